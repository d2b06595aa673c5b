"""Vectorized search for values and rows in tables, used by ``Lookup`` and ``Listed`` nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Column, build_array
from dse.core.expressions.operators import either
from dse.core.values import Array, Ints, Mask, Value

_DENSE = 2**22
"""Most combinations of prefix and value for which a dense index table is kept."""


@dataclass(frozen=True)
class ValueIndex:
    """Index that maps a value to its position among distinct values; -1 for other values."""

    values: tuple[Value, ...]

    def of(self, column: Column) -> Ints:
        """Return the position of each design's value among the indexed values, (n,).

        The position is undefined where the column has no value.
        """
        if column.codes is not None:
            own = [self._known.get(value, -1) for value in column.domain]
            return np.array([*own, -1], dtype=np.int64)[column.codes]
        if column.values.dtype == object:
            known = self._known
            return np.array([known.get(value, -1) for value in column.values], dtype=np.int64)
        numbers, places = self._numbers
        return _find_places(numbers, column.values, places)

    @cached_property
    def _known(self) -> dict[Value, int]:
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def _numbers(self) -> tuple[Array, Ints]:
        """Numeric values in ascending order, and the position of each in ``values``."""
        own = [(value, p) for p, value in enumerate(self.values) if not isinstance(value, str)]
        numbers = np.array([value for value, _ in own])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], np.array([place for _, place in own], dtype=np.int64)[order]


@dataclass(frozen=True)
class ValueMap:
    """Map from keys to values that looks up a column of n keys at once."""

    entries: tuple[tuple[Value, Value], ...]

    def of(self, key: Column) -> Column:
        """Return the value at each design's key, (n,); unknown if the key is absent or missing."""
        if not self.entries:
            return Column(np.zeros(key.values.shape), np.ones(key.values.shape, dtype=bool))
        places = self._keys.of(key)
        gone = either([key.absent, places < 0])
        return Column(self._values[places], gone if gone is not None and gone.any() else None)

    @cached_property
    def _keys(self) -> ValueIndex:
        return ValueIndex(tuple(key for key, _ in self.entries))

    @cached_property
    def _values(self) -> Array:
        return build_array(tuple(value for _, value in self.entries))


@dataclass(frozen=True)
class CombinationIndex:
    """Index of a table's rows for finding many combinations of values at once.

    The search goes column by column: it maps the first values of a combination to the index of that
    prefix among the table's distinct prefixes. A prefix that does not occur is in no row.
    """

    rows: tuple[tuple[Value | None, ...], ...]
    width: int

    def of(self, columns: Sequence[Column]) -> Column:
        """Return whether each design's combination of values is a row of the table, (n,).

        A value in the table matches only the same value, and ``None`` matches only an absent one.
        If all columns are absent, there is no combination to find: the result is unknown unless the
        table has a row that is all ``None``.

        Args:
            columns: one column of n values for each column of the table.
        """
        place: Ints = np.zeros(1, dtype=np.int64)
        if not self.rows:
            place = place - 1
        for step, column in zip(self._steps, columns, strict=True):
            place = step.after(place, column)
        return Column(place >= 0, _all_absent(columns, place))

    @cached_property
    def _steps(self) -> tuple[_Step, ...]:
        prefixes: Ints = np.zeros(len(self.rows), dtype=np.int64)
        steps = []
        for place in range(self.width):
            mine = [row[place] for row in self.rows]
            codes = {value: code for code, value in enumerate(dict.fromkeys(mine))}
            own = np.array([codes[value] for value in mine], dtype=np.int64)
            before = int(prefixes.max(initial=-1)) + 1
            keys, prefixes = np.unique(prefixes * len(codes) + own, return_inverse=True)
            steps.append(_Step(tuple(codes), keys, before * len(codes)))
        return tuple(steps)


def _all_absent(columns: Sequence[Column], place: Ints) -> Mask | None:
    """Return the mask of designs where all columns are absent, (n,), so that the result is unknown.

    It is ``None`` if there are no such designs, or if the table has a row that is all ``None``.
    """
    masks = [column.absent for column in columns if column.absent is not None]
    if not masks or len(masks) < len(columns):
        return None
    gone: Mask = np.logical_and.reduce(masks) & (place < 0)
    return gone if gone.any() else None


@dataclass(frozen=True)
class _Step:
    """Step of the search for one table column: its distinct values, and prefixes ending in it.

    A prefix is the values of a table row up to and including this column.
    """

    values: tuple[Value | None, ...]
    keys: Ints  # sorted
    combinations: int

    def after(self, place: Ints, column: Column) -> Ints:
        """Return the index of each design's prefix extended by this column; -1 if no row has it."""
        own = self._own(column)
        keys = place * len(self.values) + own
        keys = np.where((place < 0) | (own < 0), -1, keys)
        if self._dense is not None:
            return self._dense[keys]
        return _find_places(self.keys, keys, None)

    def _own(self, column: Column) -> Ints:
        places = self._places.of(column)
        own = np.where(places >= self._nothing, places + 1, places)
        if column.absent is None:
            return own
        nothing = self._nothing if self._nothing < len(self.values) else -1
        return np.where(column.absent, nothing, own)

    @cached_property
    def _places(self) -> ValueIndex:
        return ValueIndex(tuple(value for value in self.values if value is not None))

    @cached_property
    def _nothing(self) -> int:
        """Index of ``None`` among the column's values; if it is not one, their number."""
        return self.values.index(None) if None in self.values else len(self.values)

    @cached_property
    def _dense(self) -> Ints | None:
        if self.combinations > _DENSE:
            return None
        table = np.full(self.combinations + 1, -1, dtype=np.int64)  # the last is the key -1
        table[self.keys] = np.arange(len(self.keys))
        return table


def _find_places(
    ordered: Array,  # (k,), sorted
    wanted: Array,  # (n,)
    places: Ints | None,  # (k,)
) -> Ints:
    """Return the position of each wanted value among sorted values; -1 where it is missing."""
    if not len(ordered):
        return np.full(wanted.shape, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    same: Mask = ordered[at] == wanted
    return np.where(same, at if places is None else places[at], -1)
