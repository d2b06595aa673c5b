"""Many designs at once, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dse.core.design import Design
from dse.core.values import Array, Floats, Ints, Mask, Value

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Column:
    """One quantity over n designs; rows where it is absent hold a filler.

    A column over a finite domain is kept as codes into it, so that a lookup by value costs one
    pass over the domain and not one over the rows.
    """

    values: Array  # (n,), natural values
    absent: Mask | None = None  # (n,); None: present everywhere
    codes: NDArray[np.integer] | None = None  # (n,), -1 where absent
    domain: tuple[Value, ...] = ()

    @staticmethod
    def coded(domain: tuple[Value, ...], codes: NDArray[np.integer]) -> Column:
        """The column that has ``domain[code]`` in each row, and nothing where the code is -1."""
        gone = codes < 0
        values = typed(domain)[np.where(gone, 0, codes)]
        return Column(values, gone if gone.any() else None, codes, domain)

    @staticmethod
    def of(values: Sequence[Value | None]) -> Column:
        """A column from plain values; ``None`` marks an absent one."""
        gone = np.array([value is None for value in values], dtype=bool)
        filler = next((value for value in values if value is not None), 0.0)
        filled = typed(tuple(filler if value is None else value for value in values))
        return Column(filled, gone if gone.any() else None)

    def take(self, rows: Array) -> Column:
        """The column of these rows."""
        return Column(
            self.values[rows],
            None if self.absent is None else self.absent[rows],
            None if self.codes is None else self.codes[rows],
            self.domain,
        )


class Batch:
    """Columns of n designs: ``batch["tp"]`` is an (n,) array of natural values."""

    __slots__ = ("_columns", "_size")

    def __init__(self, columns: Mapping[str, Column], size: int) -> None:
        self._columns = dict(columns)
        self._size = size

    @staticmethod
    def of(designs: Sequence[Mapping[str, Value]]) -> Batch:
        """The batch of these designs."""
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
        """What the batch has columns for."""
        return frozenset(self._columns)

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by name."""
        return self._columns

    def get(self, name: str, default: Value) -> Array:
        """The column, with ``default`` where it is absent or where there is no such column."""
        column = self._columns.get(name)
        if column is None:
            return np.full(self._size, default, dtype=typed((default,)).dtype)
        if column.absent is None:
            return column.values
        return np.where(column.absent, default, column.values)

    def absent(self, name: str) -> Mask:
        """True in the rows where the parameter is inactive."""
        column = self._columns.get(name)
        if column is None:
            return np.ones(self._size, dtype=bool)
        return np.zeros(self._size, dtype=bool) if column.absent is None else column.absent

    def lookup(self, name: str, table: Mapping[Value, float], default: float = 0.0) -> Floats:
        """``table[value]`` in each row, ``default`` where the parameter is absent.

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
        """The batch of these rows."""
        size = int(rows.sum()) if rows.dtype == bool else len(rows)
        return Batch({name: column.take(rows) for name, column in self._columns.items()}, size)

    def with_columns(self, columns: Mapping[str, Column]) -> Batch:
        """The same designs with more columns beside them."""
        return Batch({**self._columns, **columns}, self._size)

    def renamed(self, names: Mapping[str, str]) -> Batch:
        """Only the columns ``names.values()``, under the names ``names.keys()``."""
        columns = {new: self._columns[old] for new, old in names.items() if old in self._columns}
        return Batch(columns, self._size)

    def row(self, index: int) -> dict[str, Value]:
        """The present values of one row, as plain Python values."""
        return {
            name: _plain(column, index)
            for name, column in self._columns.items()
            if column.absent is None or not column.absent[index]
        }

    def design(self, index: int) -> Design:
        """One row as a design."""
        return Design(self.row(index))

    def designs(self) -> list[Design]:
        """All rows as designs."""
        return [self.design(index) for index in range(self._size)]

    def __iter__(self) -> Iterator[Design]:
        return iter(self.designs())


def joined(batches: Iterable[Batch]) -> Batch:
    """The rows of all batches, one after the other; all have the same columns."""
    parts = [batch for batch in batches if len(batch)]
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: _stacked([part.columns[name] for part in parts]) for name in sorted(parts[0].names)
    }
    return Batch(columns, sum(len(part) for part in parts))


def typed(values: tuple[Value, ...]) -> Array:
    """An array of these values that never cuts a text or turns a number into one."""
    if all(isinstance(value, bool) for value in values):
        return np.array(values, dtype=bool)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain(column: Column, index: int) -> Value:
    """One row's value as the domain states it, or as a plain Python number."""
    if column.codes is not None:
        return column.domain[int(column.codes[index])]
    value: Value = column.values[index]
    return value.item() if isinstance(value, np.generic) else value


def _stacked(columns: Sequence[Column]) -> Column:
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
