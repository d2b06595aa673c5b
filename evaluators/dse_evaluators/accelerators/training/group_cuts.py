"""The best way to cut a chain into groups, where each group has a price of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Places where new groups begin, 1 to b - 1, rising, and the cost of all groups together."""

    places: tuple[int, ...]
    cost: float


def best_cuts(
    prices: Floats,  # (b, b): of the group from the first block to the last, both included
) -> Cuts:
    """The cheapest cuts; of those that cost the same, the ones with the longest first groups.

    A dynamic program over the blocks from the end: exact, since a group's price does not depend
    on the others.
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
    """The first and last block of each group that a chain of so many blocks has."""
    return tuple((first, last) for first in range(count) for last in range(first, count))
