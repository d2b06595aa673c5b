"""Grouping of designs with equal inputs, so that common results are computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Indices of n designs grouped by c distinct combinations of input values."""

    rows: Ints
    """(c,): index of one row of each combination."""
    place: Ints
    """(n,): index of each row's combination."""

    def chunks(self, most: int) -> Iterator[tuple[Ints, list[tuple[Ints, Ints]]]]:
        """Yield chunks of at most ``most`` combinations of values, with the designs that have them.

        A chunk is an array with the index of one design per combination, and a list of (indices of
        designs, index of each design's combination within the chunk), at most ``most`` designs
        each.
        """
        order = np.argsort(self.place, kind="stable")
        firsts = np.arange(0, len(self.rows) + most, most)
        ends = np.searchsorted(self.place[order], firsts).tolist()
        for first, start, end in zip(firsts.tolist(), ends, ends[1:], strict=False):
            pieces = [order[begin : min(begin + most, end)] for begin in range(start, end, most)]
            some = self.rows[first : first + most]
            yield some, [(rows, self.place[rows] - first) for rows in pieces]


def alike(columns: Sequence[Floats]) -> Alike:
    """Group the designs that have equal values in all given columns, each (n,)."""
    place = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        _, place = np.unique(place * len(values) + code, return_inverse=True)
    rows = np.zeros(place.max(initial=-1) + 1, dtype=np.intp)
    rows[place[::-1]] = np.arange(len(place))[::-1]
    return Alike(rows=rows, place=place)
