"""The evaluator ``table``: look-up of measured designs in a CSV or Parquet file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metrics
from dse.core.values import Floats, Ints
from dse.errors import PluginError
from dse_evaluators.generic.options import kind_of, metrics_of, texts_of, units_of
from dse_evaluators.generic.table_file import TableFile, read_table

_MISSING = Failure(kind="infeasible", reason="not in the table")

Key = float | str | None  # None: the parameter is absent


class Table:
    """Evaluator that looks metrics up in a file; a design that is not in it is infeasible.

    Rows of the same design are repeated measurements: the result is their mean and its standard
    error. An empty cell in a parameter's column means that the parameter is absent. Values that
    parse as numbers are compared as numbers, so that ``8``, ``8.0`` and ``"8"`` are equal.

    Args:
        file: a ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet`` file with a header.
        metrics: the unit of each column that is a metric.
        reads: the columns that are parameters; by default all columns that are not metrics.
        units: the unit of each parameter's column; by default the coherent SI unit: Hz for a
            parameter in MHz.
        kind: ``modelled`` for a table that has every design, so that look-ups are free.

    Example:
        options: {file: measured.csv, metrics: {power: W}}
        parameters: {rows: [8, 16], format: [int8, fp8]}
        objectives: {power: minimize}
        files:
          measured.csv: |
            rows,format,power
            8,int8,1
            16,fp8,3
    """

    optional: frozenset[str] = frozenset()
    pure = True

    def __init__(
        self,
        *,
        file: str,
        metrics: Mapping[str, str],
        reads: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        kind: str = "measured",
    ) -> None:
        self.provides = metrics_of(metrics)
        self.kind = kind_of(kind)
        table = read_table(file)
        table.check_columns("metrics", tuple(self.provides))
        self._names = _names(table, tuple(self.provides), reads)
        self.reads = frozenset(self._names)
        self.units = units_of(units, self.reads)
        self.version = table.digest
        self._rows, place = _number_designs(table, self._names)
        self._mean, self._spread = {}, {}
        for name in self.provides:
            self._mean[name], self._spread[name] = _summary(table.numbers(name), place)

    def evaluate(self, batch: Batch) -> Metrics:
        keys = zip(*(_keys(batch, name) for name in self._names), strict=True)
        places = np.array([self._rows.get(key, -1) for key in keys], dtype=np.int64)
        missing = places < 0
        spread = {name: column[places] for name, column in self._spread.items()}
        return Metrics(
            columns={name: np.where(missing, np.nan, c[places]) for name, c in self._mean.items()},
            spread={
                name: np.where(missing, np.nan, column)
                for name, column in spread.items()
                if not np.isnan(column).all()
            },
            failures=dict.fromkeys(np.flatnonzero(missing).tolist(), _MISSING),
        )


_TRUTH = ("true", "false")


def _names(
    table: TableFile, metrics: Sequence[str], reads: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the sorted names of the table's columns that are parameters.

    Raises:
        PluginError: there are no such columns, or one of them is a metric as well.
        SpecError: the table has no such column.
    """
    names = [c for c in table.columns if c not in metrics] if reads is None else reads
    names = texts_of("reads", names)
    table.check_columns("reads", names)
    both = next((name for name in names if name in metrics), None)
    if both is not None:
        raise PluginError(f"{both!r} is a metric and a reading", hint="take it out of one")
    if not names:
        raise PluginError("no column is left for parameters", hint="name them: reads: [...]")
    return tuple(sorted(set(names)))


def _number_designs(
    table: TableFile, names: Sequence[str]
) -> tuple[dict[tuple[Key, ...], int], Ints]:
    """Return the number of each distinct design by look-up key, and that of each row, (r,)."""
    columns = [[_key(value) for value in table.values(name)] for name in names]
    numbers: dict[tuple[Key, ...], int] = {}
    place = [numbers.setdefault(key, len(numbers)) for key in zip(*columns, strict=True)]
    return numbers, np.array(place, dtype=np.int64)


def _summary(
    values: Floats,  # (r,)
    place: Ints,  # (r,)
) -> tuple[Floats, Floats]:
    """Return a metric's mean and standard error for each design; NaN error for a single row."""
    count = np.bincount(place)
    mean = np.bincount(place, values) / count
    squares = np.bincount(place, (values - mean[place]) ** 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return mean, np.sqrt(squares / (count - 1) / count)


def _keys(batch: Batch, name: str) -> list[Key]:
    """Return the look-up keys of one parameter's values in all rows of the table."""
    if name not in batch:
        return [None] * len(batch)
    column = batch.columns[name]
    if column.codes is not None:
        known = np.array([*(_key(value) for value in column.domain), None], dtype=object)
        return known[column.codes].tolist()
    values = column.values.tolist()
    kinds = [(type(value), value) for value in values]  # True and 1 are two values
    distinct = {kind: _key(kind[1]) for kind in dict.fromkeys(kinds)}
    keys: list[Key] = [distinct[kind] for kind in kinds]
    if column.absent is not None:
        for row in np.flatnonzero(column.absent).tolist():
            keys[row] = None
    return keys


def _key(value: Any) -> Key:
    """Return the canonical look-up key of a value: a number, a stripped text, or ``None``.

    Texts that parse as numbers become numbers; truth values become ``true`` or ``false``. Numbers
    are rounded to 14 digits, so that unit conversion errors do not prevent a match.
    """
    if value is None:
        return None
    if str(value).strip().lower() in _TRUTH:
        return str(value).strip().lower()
    number = _number(value)
    return str(value).strip() if number is None else float(f"{number:.14g}")


def _number(value: Any) -> float | None:
    if isinstance(value, Real):
        return float(value)
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
