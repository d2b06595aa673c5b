"""Front and trials as columns with units in their names, in CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TextIO

import numpy as np

from dse.core.metric import Metric
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import STATES, TIMES, Trials, TrialStream
from dse.core.values import Floats, Value
from dse.report.answer import Answer, broken_limits, objective_values
from dse.report.words import broken_text, parameter_units, word_of

Sheet = Mapping[str, Sequence[Value | None]]
"""Columns of equal length by name; ``None`` is an empty cell."""


def front_columns(front: ParetoSet, trials: Sequence[Trial] = ()) -> Sheet:
    """Return the front, or the nearest misses among ``trials``, as columns; a row per design."""
    answer = Answer.of(front, trials)
    held = Trials.of(answer.trials)
    return {
        "trial": [trial.number for trial in answer.trials],
        "feasible": [answer.feasible for _ in answer.trials],
        "broken": [broken_text(front.problem, broken) or None for broken in answer.broken],
        **_quantities(front.problem, held, TrialStream.of(held).spread),
    }


def trials_columns(
    problem: Problem, trials: Sequence[Trial], spread: Collection[str] | None = None
) -> Sheet:
    """Return the trials as columns, with one row per trial.

    Args:
        problem: the problem of the study.
        trials: the trials.
        spread: the metrics that get a standard-error column; by default those for which at least
            one trial has a standard error.
    """
    held = Trials.of(trials)
    failures = held.failures.tolist()
    return {
        "trial": held.number.tolist(),
        "state": [STATES[code].value for code in held.state.tolist()],
        "feasible": problem.feasible(held).tolist(),
        "broken": [
            broken_text(problem, broken) or None if broken else None
            for broken in broken_limits(problem, held)
        ],
        "fault": [failure.kind if failure else None for failure in failures],
        "reason": [failure.reason if failure else None for failure in failures],
        "cost [s]": _finite(held.cost_s),
        "measured": held.measured.tolist(),
        "told": held.told.tolist(),
        "attempts": held.attempts.tolist(),
        **{f"{name} [s]": _finite(getattr(held, name)) for name in TIMES},
        **_quantities(problem, held, TrialStream.of(held).spread if spread is None else spread),
    }


def trials_sheets(problem: Problem, stream: TrialStream) -> Iterator[Sheet]:
    """Yield the trials as tables of columns: an empty one with the names, then one per chunk."""
    yield trials_columns(problem, (), stream.spread)
    for part in stream.parts:
        yield trials_columns(problem, part, stream.spread)


def write_csv(sheet: Sheet, file: TextIO) -> None:
    """Write the columns to a file as CSV with a header; a missing value is an empty field."""
    file.writelines(csv_texts([sheet]))


def csv_texts(sheets: Iterable[Sheet]) -> Iterator[str]:
    """Yield chunks of one CSV text with a single header, from tables with the same columns."""
    for place, sheet in enumerate(sheets):
        names = [tuple(sheet)] if place == 0 else []
        text = _plain_csv(chain(names, zip(*sheet.values(), strict=True)))
        if "\r" in text:
            text = _quoted_csv(chain(names, zip(*sheet.values(), strict=True)))
        yield text


def _plain_csv(rows: Iterable[Sequence[Value | None]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _quoted_csv(rows: Iterable[Sequence[Value | None]]) -> str:
    """Return the rows as CSV, quoting each row that contains a carriage return.

    Up to Python 3.12 the csv module does not quote a lone carriage return, which readers take as
    the end of the row.
    """
    text = io.StringIO(newline="")
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        broken = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoted if broken else plain).writerow(row)
    return text.getvalue()


def parquet_bytes(sheet: Sheet) -> bytes:
    """Return the columns as the bytes of a Parquet file; mixed types are stored as text."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: _alike(cells) for name, cells in sheet.items()})
    file = pa.BufferOutputStream()
    parquet.write_table(table, file)
    return bytes(file.getvalue())


def _quantities(
    problem: Problem, trials: Trials, spread: Collection[str]
) -> dict[str, Sequence[Value | None]]:
    """Return export columns of parameters, metrics, standard errors and objectives, by name.

    Only metrics in ``spread`` have a column of standard errors.
    """
    unknown = np.full(len(trials), np.nan)
    objectives = {
        _append_unit(objective.name, objective.unit): _finite(column)
        for objective, column in zip(
            problem.objectives, objective_values(problem, trials).T, strict=True
        )
    }
    metrics = {
        _append_unit(name, metric.unit): _label_values(trials.metrics.get(name, unknown), metric)
        for name, metric in sorted(problem.metrics.items())
    }
    spreads = {
        _append_unit(f"{name} spread", metric.unit): _finite(trials.spread.get(name, unknown))
        for name, metric in sorted(problem.metrics.items())
        if name in spread
    }
    designs = list(trials.iter_designs())
    parameters = {
        _append_unit(name, unit): [design.get(name) for design in designs]
        for name, unit in parameter_units(problem).items()
    }
    return {**parameters, **metrics, **spreads, **objectives}


def _label_values(values: Floats, metric: Metric) -> list[Value | None]:
    """Return a metric's values, (n,), as labels if it is categorical, else as numbers."""
    if not metric.words:
        return list(_finite(values))
    words = (word_of(value, metric) for value in values.tolist())
    return [
        value if word is None else word for word, value in zip(words, _finite(values), strict=True)
    ]


def _finite(values: Floats) -> list[float | None]:
    """Return a column's numbers as a list, with ``None`` for those that are not finite."""
    numbers: list[float | None] = values.tolist()
    for row in np.flatnonzero(~np.isfinite(values)).tolist():
        numbers[row] = None
    return numbers


def _append_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _alike(cells: Iterable[Value | None]) -> Any:
    """Return the values as an Arrow column; converted to text if their types differ."""
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
