"""Permutations and partial permutations of a set of items, ranked by their Lehmer code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Call, Name
from dse.core.legal_set.decision_diagram import Codes
from dse.core.parameter import Finite
from dse.core.values import Array, Floats

_MOST_CHANGES = 50_000


class Orders:
    """Indexed set of all (partial) permutations of items, in closed form without a diagram.

    It has the methods of :class:`~dse.core.legal_set.decision_diagram.Diagram`.

    Args:
        items: number of items to choose from.
        places: number of positions to fill; by default all items are placed.

    Source:
        Knuth, The Art of Computer Programming 3, section 5.1.1 (inversion tables).
    """

    def __init__(self, items: int, places: int | None = None) -> None:
        self.items = items
        self.places = items if places is None else places
        self.count = math.perm(items, self.places)
        self.edges = items**self.places

    def at(
        self,
        ranks: Array,  # (n,), whole numbers below the count
    ) -> Codes:
        """Return the permutations at these indices of the lexicographic order, (n, places)."""
        digits = np.zeros((len(ranks), self.places), dtype=np.int64)
        rest = np.array([int(rank) for rank in ranks], dtype=object)
        for place in range(self.places):
            base = math.perm(self.items - 1 - place, self.places - 1 - place)
            digits[:, place] = (rest // base).astype(np.int64)
            rest = rest % base
        return self._of(digits)

    def ranks(
        self,
        codes: Codes,  # (n, places)
    ) -> Array:
        """Return each permutation's lexicographic index, (n,); -1 if it is no permutation."""
        earlier = np.tril(np.ones((self.places, self.places), dtype=bool), -1)
        smaller = (codes[:, None, :] < codes[:, :, None]) & earlier[None]
        digits = codes - smaller.sum(axis=2)
        rank = np.zeros(len(codes), dtype=object)
        for place in range(self.places):
            rank = rank * (self.items - place) + digits[:, place]
        ordered = np.sort(codes, axis=1)
        wrong = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        wrong |= ((codes < 0) | (codes >= self.items)).any(axis=1)
        rank[wrong] = -1
        return rank.astype(np.int64) if self.count < 2**62 else rank

    def draw(self, count: int, rng: np.random.Generator) -> Codes:
        """Return permutations drawn uniformly, (count, places)."""
        each = np.tile(np.arange(self.items, dtype=np.int32), (count, 1))
        return rng.permuted(each, axis=1)[:, : self.places]

    def spread(
        self,
        points: Floats,  # (n, places), in [0, 1)
    ) -> Codes:
        """Map points of the unit cube to permutations, (n, places), preserving uniformity."""
        left = self.items - np.arange(self.places)
        return self._of(np.minimum((points * left).astype(np.int64), left - 1))

    def occurrences(self, sizes: Sequence[int]) -> list[list[int]]:
        """Return, by position, how many permutations have each item, after a 0 for inactive."""
        each = math.perm(self.items - 1, self.places - 1)
        return [[0, *([each] * size)] for size in sizes]

    def nearest(self, costs: Sequence[Floats]) -> Codes:
        """Return a permutation of low total cost, (places,), by greedy assignment of items.

        Args:
            costs: for each position an array, (items + 1,): the cost of being inactive, then the
                cost of each item.
        """
        table = np.stack(costs)[:, 1:].astype(float)
        codes = np.zeros(self.places, dtype=np.int32)
        for _ in range(self.places):
            place, item = np.unravel_index(int(np.argmin(table)), table.shape)
            codes[place] = item
            table[place, :] = np.inf
            table[:, item] = np.inf
        return codes

    def least_other(
        self,
        costs: Sequence[Floats],  # noqa: ARG002 - the same for every order
        row: Codes,  # noqa: ARG002
    ) -> float:
        """Return the least number of positions in which two different permutations differ.

        It is infinite if there is only one permutation.
        """
        if self.places < self.items:
            return 1.0 if self.places else math.inf
        return 2.0 if self.items > 1 else math.inf

    def within(
        self,
        costs: Sequence[Floats],
        most: float,
    ) -> Codes | None:
        """Return the least-cost permutation and all that differ from it in at most ``most`` places.

        Args:
            costs: for each position an array, (items + 1,): 0 for the item that the least-cost
                permutation has there, 1 for every other item, after the cost of being inactive.
            most: 1 or 2; the result is ``None`` for other numbers, and if there are too many.
        """
        row = np.array([int(np.argmin(one)) - 1 for one in costs], dtype=np.int32)
        unused = np.setdiff1d(np.arange(self.items, dtype=np.int32), row)
        if most not in (1, 2):
            return None
        places, items = np.indices((self.places, len(unused))).reshape(2, -1)
        singles = np.repeat(row[None, :], len(places), axis=0)
        singles[np.arange(len(places)), places] = unused[items]
        found = [row[None, :], singles]
        if most == 2:
            ones, others = np.triu_indices(self.places, 1)
            if len(ones) * (len(unused) + 2) ** 2 > _MOST_CHANGES:
                return None
            pairs = zip(ones.tolist(), others.tolist(), strict=True)
            found += [_change_pair(row, unused, pair) for pair in pairs]
        return np.concatenate(found)

    def _of(
        self,
        digits: Array,  # (n, places): index of the next item among those left
    ) -> Codes:
        codes = digits.astype(np.int32)
        for place in range(self.places - 2, -1, -1):  # later items skip those placed earlier
            codes[:, place + 1 :] += codes[:, place + 1 :] >= codes[:, place, None]
        return codes


def _change_pair(row: Codes, unused: Codes, pair: tuple[int, int]) -> Codes:
    """Return the permutations that differ from ``row`` in exactly two given positions."""
    one, other = pair
    free = np.array([row[one], row[other], *unused], dtype=np.int32)
    first, second = (side.reshape(-1) for side in np.meshgrid(free, free, indexing="ij"))
    keep = (first != second) & (first != row[one]) & (second != row[other])
    found = np.repeat(row[None, :], int(keep.sum()), axis=0)
    found[:, one], found[:, other] = first[keep], second[keep]
    return found


def order_of(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> tuple[Orders, Expression] | None:
    """Return the permutations that an ``all_different`` rule allows, with the rule; else ``None``.

    The rule has to read all parameters of the group, and all of these need the same domain.
    """
    domain = parameters[0].values
    if conditions or len({p.values for p in parameters}) > 1 or len(set(domain)) < len(domain):
        return None
    names = {Name(parameter.name) for parameter in parameters}
    for rule in constraints:
        node = rule.node
        if (
            isinstance(node, Call)
            and node.function == "all_different"
            and set(node.arguments) == names
            and len(node.arguments) == len(names)
        ):
            return Orders(len(domain), len(names)), rule
    return None
