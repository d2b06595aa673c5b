"""The front and the trials as columns with units in their names, in CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TextIO

from dse.core.metric import Metric
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import TIMES
from dse.core.values import Value
from dse.report.answer import Answer, broken_limits, objective_values
from dse.report.export import finite
from dse.report.words import broken_text, parameter_units, word_of

Sheet = Mapping[str, Sequence[Value | None]]
"""Columns of equal length by name; ``None`` is an empty cell."""


def front_columns(front: ParetoSet, trials: Sequence[Trial] = ()) -> Sheet:
    """The front, or the nearest misses among ``trials``, one row for each design."""
    answer = Answer.of(front, trials)
    return {
        "trial": [trial.number for trial in answer.trials],
        "feasible": [answer.feasible for _ in answer.trials],
        "broken": [broken_text(front.problem, broken) or None for broken in answer.broken],
        **_quantities(front.problem, answer.trials),
    }


def trials_columns(problem: Problem, trials: Sequence[Trial]) -> Sheet:
    """All trials, one row for each."""
    faults = [trial.fault for trial in trials]
    return {
        "trial": [trial.number for trial in trials],
        "state": [trial.state.value for trial in trials],
        "feasible": problem.feasible(trials).tolist(),
        "broken": [
            broken_text(problem, broken) or None for broken in broken_limits(problem, trials)
        ],
        "fault": [fault.kind if fault else None for fault in faults],
        "reason": [fault.reason if fault else None for fault in faults],
        "cost [s]": [finite(trial.cost_s) for trial in trials],
        "measured": [trial.measured for trial in trials],
        "told": [trial.told for trial in trials],
        "attempts": [trial.attempts for trial in trials],
        **{f"{name} [s]": [getattr(trial, name) for trial in trials] for name in TIMES},
        **_quantities(problem, trials),
    }


def write_csv(sheet: Sheet, file: TextIO) -> None:
    """The sheet as CSV with one line of names; an empty cell is an empty field."""
    plain = csv.writer(file, lineterminator="\n")
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in chain([tuple(sheet)], zip(*sheet.values(), strict=True)):
        # up to Python 3.12 a carriage return alone is not quoted, and ends the row for readers
        broken = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoted if broken else plain).writerow(row)


def parquet_bytes(sheet: Sheet) -> bytes:
    """The sheet as a Parquet file; a column of mixed kinds is kept as text."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: _alike(cells) for name, cells in sheet.items()})
    file = pa.BufferOutputStream()
    parquet.write_table(table, file)
    return bytes(file.getvalue())


def _quantities(problem: Problem, trials: Sequence[Trial]) -> dict[str, Sequence[Value | None]]:
    """Objectives, metrics and parameters, each once."""
    values = objective_values(problem, trials).T.tolist()
    objectives = {
        _named(objective.name, objective.unit): list(map(finite, column))
        for objective, column in zip(problem.objectives, values, strict=True)
    }
    metrics = {
        _named(name, metric.unit): [_told(trial.metrics.get(name), metric) for trial in trials]
        for name, metric in sorted(problem.metrics.items())
    }
    spreads = {
        _named(f"{name} spread", metric.unit): [finite(t.spread.get(name)) for t in trials]
        for name, metric in sorted(problem.metrics.items())
        if any(name in trial.spread for trial in trials)
    }
    parameters = {
        _named(name, unit): [trial.design.get(name) for trial in trials]
        for name, unit in parameter_units(problem).items()
    }
    return {**parameters, **metrics, **spreads, **objectives}


def _told(value: float | None, metric: Metric) -> Value | None:
    word = word_of(value, metric)
    return finite(value) if word is None else word


def _named(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _alike(cells: Iterable[Value | None]) -> Any:
    """The cells as one Arrow column."""
    import pyarrow as pa

    held = list(cells)
    kinds = {_kind(cell) for cell in held if cell is not None}
    if not kinds:
        return pa.array(held, type=pa.float64())
    if len(kinds) > 1:
        return pa.array([None if cell is None else str(cell) for cell in held])
    return pa.array(held)


def _kind(cell: Value) -> str:
    if isinstance(cell, bool):
        return "truth"
    return "text" if isinstance(cell, str) else "number"
