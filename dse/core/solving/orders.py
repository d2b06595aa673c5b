"""All orders of some items, ranked by their Lehmer code: a group that is one permutation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.expression import Call, Expression, Name
from dse.core.parameter import Finite
from dse.core.solving.growth import Codes
from dse.core.values import Array, Floats


class Orders:
    """What :class:`~dse.core.solving.diagram.Diagram` is to other groups, without a graph.

    Source:
        Knuth, The Art of Computer Programming 3, section 5.1.1 (inversion tables).
    """

    def __init__(self, items: int) -> None:
        self.items = items
        self.count = math.factorial(items)
        self.edges = items**items

    def at(
        self,
        ranks: Array,  # (n,), whole numbers below the count
    ) -> Codes:
        """The orders of these ranks, (n, items)."""
        digits = np.zeros((len(ranks), self.items), dtype=np.int64)
        rest = np.array([int(rank) for rank in ranks], dtype=object)
        for place in range(self.items):
            base = math.factorial(self.items - 1 - place)
            digits[:, place] = (rest // base).astype(np.int64)
            rest = rest % base
        return self._of(digits)

    def ranks(
        self,
        codes: Codes,  # (n, items)
    ) -> Array:
        """The rank of each order, (n,); -1 for what is none."""
        later = np.triu(np.ones((self.items, self.items), dtype=bool), 1)
        smaller = (codes[:, None, :] < codes[:, :, None]) & later[None]
        digits = smaller.sum(axis=2)
        rank = np.zeros(len(codes), dtype=object)
        for place in range(self.items):
            rank = rank * (self.items - place) + digits[:, place]
        wrong = (np.sort(codes, axis=1) != np.arange(self.items)).any(axis=1)
        rank[wrong] = -1
        return rank.astype(np.int64) if self.count < 2**62 else rank

    def draw(self, count: int, rng: np.random.Generator) -> Codes:
        """Orders drawn uniformly, (count, items)."""
        each = np.tile(np.arange(self.items, dtype=np.int32), (count, 1))
        return rng.permuted(each, axis=1)

    def spread(
        self,
        points: Floats,  # (n, items), in [0, 1)
    ) -> Codes:
        """The orders at points of the cube, (n, items); uniform points give uniform ones."""
        left = self.items - np.arange(self.items)
        return self._of(np.minimum((points * left).astype(np.int64), left - 1))

    def occurrences(self, sizes: Sequence[int]) -> list[list[int]]:
        """In how many orders each item is at each place; inactive first, which is never."""
        each = math.factorial(self.items - 1)
        return [[0, *([each] * size)] for size in sizes]

    def nearest(self, costs: Sequence[Floats]) -> Codes:
        """An order of low total cost, (items,): the cheapest pairs of place and item first."""
        table = np.stack(costs)[:, 1:].astype(float)
        codes = np.zeros(self.items, dtype=np.int32)
        for _ in range(self.items):
            place, item = np.unravel_index(int(np.argmin(table)), table.shape)
            codes[place] = item
            table[place, :] = np.inf
            table[:, item] = np.inf
        return codes

    def least_other(
        self,
        costs: Sequence[Floats],  # noqa: ARG002 - two places at least change in an order
        row: Codes,  # noqa: ARG002
    ) -> float:
        """The number of places in which another order differs at least."""
        return 2.0 if self.items > 1 else math.inf

    def within(
        self,
        costs: Sequence[Floats],
        most: float,
    ) -> Codes | None:
        """The order itself and every swap of two places, which are all within two changes."""
        row = np.array([int(np.argmin(one)) - 1 for one in costs], dtype=np.int32)
        if most != 2:
            return None
        ones, others = np.triu_indices(self.items, 1)
        found = np.repeat(row[None, :], len(ones) + 1, axis=0)
        turns = np.arange(len(ones))
        found[turns, ones], found[turns, others] = row[others], row[ones]
        return found

    def _of(
        self,
        digits: Array,  # (n, items): which of the items that are left comes next
    ) -> Codes:
        codes = digits.astype(np.int32)
        for place in range(self.items - 2, -1, -1):  # later ones move up past each earlier one
            codes[:, place + 1 :] += codes[:, place + 1 :] >= codes[:, place, None]
        return codes


def is_order(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> bool:
    """True if the group is all different values of one domain that has just as many."""
    if conditions or len(constraints) != 1 or len({p.values for p in parameters}) > 1:
        return False
    rule = constraints[0].node
    return (
        isinstance(rule, Call)
        and rule.function == "all_different"
        and set(rule.arguments) == {Name(p.name) for p in parameters}
        and len(rule.arguments) == len(parameters) == len(set(parameters[0].values))
        and len(parameters[0].values) == len(parameters)
    )
