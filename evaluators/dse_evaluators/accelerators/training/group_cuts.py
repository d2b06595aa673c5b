"""Optimal partition of a chain of blocks into groups of consecutive blocks.

The cost of each group is independent of the other groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Blocks at which new groups begin, 1 to b - 1, ascending, and the total cost of all groups."""

    places: tuple[int, ...]
    cost: float


def best_cuts(
    prices: Floats,  # (b, b): cost of the group from the first block to the last, inclusive
) -> Cuts:
    """Find the partition of a chain of blocks into groups with the least total cost.

    Uses dynamic programming over the blocks from the last one: exact, since a group's cost does not
    depend on the other groups. Of equally good partitions, the one with the longest first groups is
    returned.
    """
    count = len(prices)
    least = np.zeros(count + 1)
    ends = [0] * count
    for first in range(count - 1, -1, -1):
        totals = prices[first, first:] + least[first + 1 :]
        last = len(totals) - 1 - int(np.argmin(totals[::-1]))
        least[first], ends[first] = totals[last], first + last
    places, block = list[int](), ends[0] + 1
    while block < count:
        places.append(block)
        block = ends[block] + 1
    return Cuts(places=tuple(places), cost=float(least[0]))


def every_group(count: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last block of each possible group in a chain of ``count`` blocks."""
    return tuple((first, last) for first in range(count) for last in range(first, count))
