"""Designs that have some knobs alike, found so that what these decide is worked out once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Rows by the combination of values that they have."""

    rows: Ints
    """(c,): one row of each combination."""
    place: Ints
    """(n,): the combination of each row."""

    def chunks(self, most: int) -> Iterator[tuple[Ints, list[tuple[Ints, Ints]]]]:
        """So many combinations at a time, and at most so many of the rows that have them.

        Yields one row of each combination, with pieces: rows, and which of these combinations each
        of them has.
        """
        order = np.argsort(self.place, kind="stable")
        firsts = np.arange(0, len(self.rows) + most, most)
        ends = np.searchsorted(self.place[order], firsts).tolist()
        for first, start, end in zip(firsts.tolist(), ends, ends[1:], strict=False):
            pieces = [order[begin : min(begin + most, end)] for begin in range(start, end, most)]
            some = self.rows[first : first + most]
            yield some, [(rows, self.place[rows] - first) for rows in pieces]


def alike(columns: Sequence[Floats]) -> Alike:
    """The rows that agree in all of these columns, each (n,)."""
    place = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        _, place = np.unique(place * len(values) + code, return_inverse=True)
    rows = np.zeros(place.max(initial=-1) + 1, dtype=np.intp)
    rows[place[::-1]] = np.arange(len(place))[::-1]
    return Alike(rows=rows, place=place)
