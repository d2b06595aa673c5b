"""Notebook view of a trial: its design, metrics, failure and cost."""

from __future__ import annotations

from collections.abc import Mapping

from dse.api.notebook.parts import TableColumn, facts, framed, note, side_by_side, table
from dse.core.metric import Metric
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Value
from dse.report.text.space_words import format_count
from dse.report.words import metric_text, parameter_units, seconds_text, value_text

MOST_ROWS = 40


def trial_html(trial: Trial, problem: Problem | None = None) -> str:
    """Return the HTML view of a trial.

    Args:
        trial: the trial.
        problem: the problem of its study, which has the units of the metrics; without a problem no
            units are shown.
    """
    units = parameter_units(problem) if problem else {}
    metrics = problem.metrics if problem else {}
    return framed(
        f"Trial {trial.number}",
        facts(_facts(trial)),
        side_by_side(_design(trial.design, units), _metrics(trial, metrics)),
        beside=trial.state.value,
    )


def _facts(trial: Trial) -> list[tuple[str, str]]:
    failure = trial.failure
    again = f"issued again {trial.attempts} time{'s' if trial.attempts != 1 else ''}"
    return [
        ("failure", f"{failure.kind}: {failure.reason}" if failure else ""),
        ("cost", seconds_text(trial.cost_s) if trial.state.finished else ""),
        ("attempts", again if trial.attempts else ""),
    ]


def _design(design: Mapping[str, Value], units: Mapping[str, str]) -> str:
    names = [name for name in units if name in design] or list(design)
    shown = names[:MOST_ROWS]
    cells = [value_text(design[name], units.get(name, "")) for name in shown]
    more = len(names) - len(shown)
    return table(
        [
            TableColumn(heading="parameter", cells=shown),
            TableColumn(heading="value", cells=cells, number=True),
        ]
    ) + note(f"and {format_count(more, 'more parameter')}: .design" if more > 0 else "")


def _metrics(trial: Trial, known: Mapping[str, Metric]) -> str:
    cells = [
        metric_text(value, known.get(name, Metric(name)), trial.spread.get(name))
        for name, value in trial.metrics.items()
    ]
    return table(
        [
            TableColumn(heading="metric", cells=list(trial.metrics)),
            TableColumn(heading="value", cells=cells, number=True),
        ]
    )
