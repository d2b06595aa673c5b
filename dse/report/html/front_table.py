"""HTML table of the front, with a sort key in each cell."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape

from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.core.values import Value
from dse.report.answer import MOST_SHOWN, Answer
from dse.report.html.page_parts import breakable
from dse.report.words import (
    metric_text,
    number_text,
    parameter_units,
    truncate_text,
    value_text,
)


def front_rows(front: ParetoSet, answer: Answer) -> str:
    """Return the table: a row per design; a column per objective, metric and shown parameter.

    A front of more than ``MOST_SHOWN`` designs is reduced to those that the figures draw.
    """
    knee = front.knee if len(front.trials) > 2 else None
    sides = {name: _side(answer, name) for name in answer.told}
    shown = answer.thin(MOST_SHOWN, knee)
    rows = "".join(
        f"<tr>{_trial_cell(trial, knee=trial is knee)}{_cells(answer, trial, values, sides)}</tr>"
        for trial, values in zip(shown.trials, shown.values.tolist(), strict=True)
    )
    return f"<table><thead><tr>{_heading(answer, sides)}</tr></thead><tbody>{rows}</tbody></table>"


def _heading(answer: Answer, sides: Mapping[str, str]) -> str:
    objectives = [(o.name, o.goal, "") for o in answer.problem.objectives]
    metrics = [(name, "", "") for name in answer.other_metrics]
    parameters = [(name, "", side) for name, side in sides.items()]
    return "".join(
        f'<th scope="col" class="{side}">'
        f'<button type="button">{breakable(truncate_text(name))}</button><small>{note}</small></th>'
        for name, note, side in [("trial", "", ""), *objectives, *metrics, *parameters]
    )


def _trial_cell(trial: Trial, *, knee: bool) -> str:
    tag = '<span class="tag">knee</span>' if knee else ""
    return f'<td data-value="{trial.number}">{tag}{trial.number}</td>'


def _cells(answer: Answer, trial: Trial, values: Sequence[float], sides: Mapping[str, str]) -> str:
    problem = answer.problem
    units = parameter_units(problem)
    pairs = zip(problem.objectives, values, strict=True)
    cells = [
        _cell(value, number_text(value, o.unit, trial.spread.get(o.text), o.written), "")
        for o, value in pairs
    ]
    for name in answer.other_metrics:
        number, metric = trial.metrics.get(name), problem.metrics[name]
        cells.append(_cell(number, metric_text(number, metric, trial.spread.get(name)), ""))
    for name, side in sides.items():
        value = trial.design.get(name)
        cells.append(_cell(value, value_text(value, units[name]), side))
    return "".join(cells)


def _cell(value: Value | None, words: str, side: str) -> str:
    known = value is not None and not (isinstance(value, float) and not math.isfinite(value))
    key = value if isinstance(value, str) else json.dumps(value) if known else ""
    return f'<td class="{side}" data-value="{escape(str(key))}">{escape(truncate_text(words))}</td>'


def _side(answer: Answer, name: str) -> str:
    """Return the CSS class of a column: text is aligned left, numbers are aligned right."""
    values = [trial.design.get(name) for trial in answer.trials]
    return "text" if any(isinstance(value, bool | str) for value in values) else ""
