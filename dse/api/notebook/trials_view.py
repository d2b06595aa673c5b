"""Notebook view of several trials: a table of the latest trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dse.api.notebook.parts import TableColumn, framed, note, table
from dse.core.metric import Metric
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.report.text.space_words import format_count
from dse.report.words import join_list, metric_text, parameter_units, value_text

MOST_ROWS = 12
MOST_COLUMNS = 8
"""Maximum number of metrics, and of parameters, in the table; data frames have all."""


def trials_html(trials: Trials, problem: Problem | None = None) -> str:
    """Return HTML with the number of trials in each state and the latest of them.

    Args:
        trials: trials by number.
        problem: the problem of their study, which has the units of the metrics; without a problem
            no units are shown.
    """
    shown = list(trials[-MOST_ROWS:])
    units = parameter_units(problem) if problem else {}
    known = problem.metrics if problem else {}
    metrics = _names(known, (trial.metrics for trial in shown))
    parameters = _names(units, (trial.design for trial in shown))
    summary = ", ".join(f"{count:,} {state.value}" for state, count in trials.counts.items())
    rest = [
        (len(trials) - len(shown), "earlier trial"),
        (len(metrics) - MOST_COLUMNS, "more metric"),
        (len(parameters) - MOST_COLUMNS, "more parameter"),
    ]
    missing = join_list([format_count(number, noun) for number, noun in rest if number > 0])
    return framed(
        "Trials",
        table(
            [
                TableColumn(heading="trial", cells=[f"{one.number}" for one in shown], number=True),
                TableColumn(heading="state", cells=[one.state.value for one in shown]),
                *_metrics(shown, metrics[:MOST_COLUMNS], known),
                *_parameters(shown, parameters[:MOST_COLUMNS], units),
                *_failures(shown),
            ]
        ),
        note(f"and {missing}: study.to_pandas()" if missing else ""),
        beside=summary or "none yet",
    )


def _metrics(
    shown: Sequence[Trial], names: Sequence[str], known: Mapping[str, Metric]
) -> list[TableColumn]:
    return [
        TableColumn(
            heading=name,
            number=True,
            cells=[
                metric_text(one.metrics[name], known.get(name, Metric(name)), one.spread.get(name))
                if name in one.metrics
                else ""
                for one in shown
            ],
        )
        for name in names
    ]


def _parameters(
    shown: Sequence[Trial], names: Sequence[str], units: Mapping[str, str]
) -> list[TableColumn]:
    return [
        TableColumn(
            heading=name,
            cells=[value_text(one.design.get(name), units.get(name, "")) for one in shown],
            number=not any(isinstance(one.design.get(name), str | bool) for one in shown),
        )
        for name in names
    ]


def _failures(shown: Sequence[Trial]) -> list[TableColumn]:
    """Return a column with each trial's failure; no column if no trial has one."""
    texts = [f"{one.failure.kind}: {one.failure.reason}" if one.failure else "" for one in shown]
    return [TableColumn(heading="failure", cells=texts)] if any(texts) else []


def _names(known: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the distinct names in all rows: names in ``known``, in its order, then the others."""
    there = dict.fromkeys(name for row in rows for name in row)
    return list(dict.fromkeys([*(name for name in known if name in there), *there]))
