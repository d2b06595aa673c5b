"""HTML table of the front, whose cells carry sort keys for sorting on the page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from dse.core.pareto import ParetoSet
from dse.core.trial import Trial
from dse.core.values import Value
from dse.report.answer import MOST_SHOWN, Answer
from dse.report.html.render import render
from dse.report.words import (
    metric_text,
    number_text,
    parameter_units,
    value_text,
)


def front_rows(front: ParetoSet, answer: Answer) -> str:
    """Return the front as an HTML table: a row per design, columns for results and parameters.

    A front of more than ``MOST_SHOWN`` designs is reduced to those that the figures draw.
    """
    knee = front.knee if len(front.trials) > 2 else None
    sides = {name: _side(answer, name) for name in answer.shown_parameters}
    shown = answer.thin(MOST_SHOWN, knee)
    return render(
        "report/front_table.html",
        heads=[
            ("trial", "", ""),
            *((o.name, o.goal, "") for o in answer.problem.objectives),
            *((name, "", "") for name in answer.other_metrics),
            *((name, "", side) for name, side in sides.items()),
        ],
        rows=[
            (trial.number, trial is knee, _cells(answer, trial, values, sides))
            for trial, values in zip(shown.trials, shown.values.tolist(), strict=True)
        ],
    )


def _cells(
    answer: Answer, trial: Trial, values: Sequence[float], sides: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Return the cells of a design's table row: sort key, text and CSS class of each."""
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
    return cells


def _cell(value: Value | None, words: str, side: str) -> tuple[str, str, str]:
    known = value is not None and not (isinstance(value, float) and not math.isfinite(value))
    return value if isinstance(value, str) else json.dumps(value) if known else "", words, side


def _side(answer: Answer, name: str) -> str:
    """Return the CSS class that aligns a column: strings to the left, numbers to the right."""
    values = [trial.design.get(name) for trial in answer.trials]
    return "text" if any(isinstance(value, bool | str) for value in values) else ""
