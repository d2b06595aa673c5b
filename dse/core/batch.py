"""Columnar storage of many designs, for vectorized evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dse.core.design import Design
from dse.core.values import Array, Floats, Ints, Mask, Value

_T = TypeVar("_T")

_MOST_COMBINATIONS = 4
"""Most combinations per row for which :meth:`Batch.distinct` uses a table of combinations."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of a parameter or metric over n designs; arbitrary filler values where it is absent.

    A column over a finite domain also stores codes, which are indices into the domain, so that a
    lookup by value compares once per value of the domain and not once per design.
    """

    values: Array  # (n,), natural values
    absent: Mask | None = None  # (n,); None: present everywhere
    codes: NDArray[np.integer] | None = None  # (n,), -1 where absent
    domain: tuple[Value, ...] = ()

    @staticmethod
    def coded(domain: tuple[Value, ...], codes: NDArray[np.integer]) -> Column:
        """Build a column with ``domain[code]`` for each design, absent where the code is -1.

        Args:
            domain: the values that the codes index.
            codes: indices into ``domain``, (n,); -1 for absent.
        """
        gone = codes < 0
        if not gone.any():
            return Column(build_array(domain).take(codes), None, codes, domain)
        return Column(build_array(domain).take(np.where(gone, 0, codes)), gone, codes, domain)

    @staticmethod
    def of(values: Sequence[Value | None]) -> Column:
        """Build a column from n plain values; ``None`` marks an absent value."""
        gone = np.array([value is None for value in values], dtype=bool)
        filler = next((value for value in values if value is not None), 0.0)
        filled = build_array(tuple(filler if value is None else value for value in values))
        return Column(filled, gone if gone.any() else None)

    def take(self, rows: Array) -> Column:
        """Return the column of the selected designs, given as indices or a mask."""
        return Column(
            self.values[rows],
            None if self.absent is None else self.absent[rows],
            None if self.codes is None else self.codes[rows],
            self.domain,
        )


@dataclass(frozen=True, slots=True)
class Distinct:
    """Groups of designs of a batch that have equal values in some columns, with representatives.

    ``rows`` are the indices of the d representatives; ``place`` maps each of the n designs of the
    batch to its index in ``rows``.
    """

    rows: Ints  # (d,), one row of each combination
    place: Ints | None  # (n,), index into rows; None: every row is its own representative

    def spread(self, values: Array) -> Array:
        """Expand one value per distinct design, (..., d), to one value per design, (..., n)."""
        return values if self.place is None else np.take(values, self.place, axis=-1)

    def spread_rows(self, found: Mapping[int, _T]) -> dict[int, _T]:
        """Copy the result of each distinct design, keyed by index, to all designs equal to it."""
        if self.place is None or not found:
            return dict(found)
        named = np.zeros(len(self.rows), dtype=bool)
        named[list(found)] = True
        rows = np.flatnonzero(named[self.place]).tolist()
        return {row: found[int(self.place[row])] for row in rows}


class Batch:
    """Batch of n designs as columns: ``batch["tp"]`` is an (n,) array of parameter values."""

    __slots__ = ("_columns", "_size")

    def __init__(self, columns: Mapping[str, Column], size: int) -> None:
        self._columns = dict(columns)
        self._size = size

    @staticmethod
    def of(designs: Sequence[Mapping[str, Value]]) -> Batch:
        """Build a batch from designs, with one column for each parameter name that occurs."""
        names = sorted({name for design in designs for name in design})
        columns = {name: Column.of([design.get(name) for design in designs]) for name in names}
        return Batch(columns, len(designs))

    def __len__(self) -> int:
        return self._size

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Array:
        return self._columns[name].values

    @property
    def names(self) -> frozenset[str]:
        """Names of the batch's columns, which are parameters and metrics."""
        return frozenset(self._columns)

    @property
    def columns(self) -> Mapping[str, Column]:
        """Columns of the batch, by the name of their parameter or metric."""
        return self._columns

    def get(self, name: str, default: Value) -> Array:
        """Return the values of a column, (n,), with ``default`` where the column has no value.

        If there is no such column, every row has the default.
        """
        column = self._columns.get(name)
        if column is None:
            return np.full(self._size, default, dtype=build_array((default,)).dtype)
        if column.absent is None:
            return column.values
        return np.where(column.absent, default, column.values)

    def absent(self, name: str) -> Mask:
        """Return the mask of the designs in which the parameter is inactive, (n,).

        The mask is true everywhere if there is no such column.
        """
        column = self._columns.get(name)
        if column is None:
            return np.ones(self._size, dtype=bool)
        return np.zeros(self._size, dtype=bool) if column.absent is None else column.absent

    def lookup(self, name: str, table: Mapping[Value, float], default: float = 0.0) -> Floats:
        """Return ``table[value]`` for each design, (n,), with ``default`` where it is absent.

        Raises:
            KeyError: the column holds a value that the table lacks.
        """
        column = self._columns.get(name)
        if column is None:
            return np.full(self._size, default)
        if column.codes is not None:
            known = [table.get(value, np.nan) for value in column.domain]
            found = np.append(np.array(known, dtype=float), default)[column.codes]
        else:
            distinct, place = np.unique(column.values, return_inverse=True)
            found = np.array([table.get(value, np.nan) for value in distinct.tolist()])[place]
            found = np.where(self.absent(name), default, found)
        if np.isnan(found).any():
            raise KeyError(column.values[np.isnan(found)][0])
        return found

    def take(self, rows: Array) -> Batch:
        """Return the batch of the selected designs, given as indices or a mask."""
        size = int(rows.sum()) if rows.dtype == bool else len(rows)
        return Batch({name: column.take(rows) for name, column in self._columns.items()}, size)

    def distinct(self, names: Iterable[str]) -> Distinct:
        """Return the batch's designs grouped by equal values in the given columns.

        Grouping saves work only with few groups: all designs are treated as distinct if a column
        has no codes, if more than half of the designs differ, or if there may be over four times as
        many combinations of values as designs. Names without a column are ignored.
        """
        every = Distinct(np.arange(self._size), None)
        columns, combinations = list[tuple[NDArray[np.integer], int, int]](), 1
        for name in sorted(self._columns.keys() & set(names)):
            codes = self._columns[name].codes
            if codes is None or not self._size:
                return every
            least, span = int(codes.min()), int(np.ptp(codes)) + 1
            combinations *= span
            if combinations > _MOST_COMBINATIONS * self._size:
                return every
            columns += [(codes, least, span)] if span > 1 else []
        place = np.zeros(self._size, dtype=np.int64)
        for codes, least, span in columns:
            place *= span
            place += codes
            place -= least
        row = np.full(combinations, -1)
        row[place] = np.arange(self._size)
        found = np.flatnonzero(row >= 0)
        if 2 * len(found) > self._size:
            return every
        number = np.empty(combinations, dtype=np.int64)
        number[found] = np.arange(len(found))
        return Distinct(row[found], number[place])

    def with_columns(self, columns: Mapping[str, Column]) -> Batch:
        """Return the batch with additional columns; they replace columns of the same name."""
        return Batch({**self._columns, **columns}, self._size)

    def renamed(self, names: Mapping[str, str]) -> Batch:
        """Return a batch of the columns ``names.values()`` only, renamed to the matching keys."""
        columns = {new: self._columns[old] for new, old in names.items() if old in self._columns}
        return Batch(columns, self._size)

    def row(self, index: int) -> dict[str, Value]:
        """Return one design's values, without absent ones, as plain Python values by name."""
        return {
            name: _plain(column, index)
            for name, column in self._columns.items()
            if column.absent is None or not column.absent[index]
        }

    def design(self, index: int) -> Design:
        """Return the design at an index of the batch."""
        return Design(self.row(index))

    def designs(self) -> list[Design]:
        """Return all designs of the batch as a list."""
        names = sorted(self._columns)
        values = [_plain_values(self._columns[name]) for name in names]
        rows = zip(*values, strict=True) if names else ((),) * self._size
        if all(self._columns[name].absent is None for name in names):
            return [Design(dict(zip(names, row, strict=True))) for row in rows]
        return [
            Design({n: v for n, v in zip(names, row, strict=True) if v is not None}) for row in rows
        ]

    def __iter__(self) -> Iterator[Design]:
        return iter(self.designs())


def concatenate_batches(batches: Iterable[Batch]) -> Batch:
    """Concatenate the designs of several batches, which must have the same columns."""
    parts = [batch for batch in batches if len(batch)]
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: _stack_columns([part.columns[name] for part in parts])
        for name in sorted(parts[0].names)
    }
    return Batch(columns, sum(len(part) for part in parts))


def build_array(values: tuple[Value, ...]) -> Array:
    """Build an array; strings, and Booleans mixed with numbers, give an array of Python objects."""
    kinds = set(map(type, values))
    if kinds in ({int}, {float}):  # fast path for the most frequent case
        return np.array(values)
    if all(isinstance(value, bool) for value in values):
        return np.array(values, dtype=bool)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain_values(column: Column) -> list[Value | None]:
    """Return each design's value as a plain Python value; ``None`` where it is absent."""
    values: list[Value | None]
    if column.codes is not None:
        values = [column.domain[code] if code >= 0 else None for code in column.codes.tolist()]
    elif column.values.dtype == object:
        values = [_plain(column, index) for index in range(len(column.values))]
    else:
        values = column.values.tolist()
    if column.absent is None:
        return values
    return [None if gone else v for gone, v in zip(column.absent.tolist(), values, strict=True)]


def _plain(column: Column, index: int) -> Value:
    """Return one design's value, as the domain has it or, without codes, as a Python value."""
    if column.codes is not None:
        return column.domain[int(column.codes[index])]
    value: Value = column.values[index]
    return value.item() if isinstance(value, np.generic) else value


def _stack_columns(columns: Sequence[Column]) -> Column:
    gone: Mask | None = None
    if any(column.absent is not None for column in columns):
        gone = np.concatenate(
            [
                np.zeros(len(column.values), dtype=bool) if column.absent is None else column.absent
                for column in columns
            ]
        )
    codes: Ints | None = None
    if all(column.codes is not None for column in columns):
        codes = np.concatenate([column.codes for column in columns if column.codes is not None])
    values = np.concatenate([column.values for column in columns])
    return Column(values, gone, codes, columns[0].domain if codes is not None else ())
