"""Decision diagram: a layered graph whose paths are the legal combinations of some parameters.

A layer sets one parameter; an edge is one of its values. Every state stores the number of its paths
to the end. These numbers give the count, the index of a combination and its inverse, uniform draws
and how often each value occurs; shortest paths give the combination nearest to a wanted one. None
of this enumerates the combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Array, Floats, Ints, Mask

_WORD = 2**62
"""Least count that is stored as a Python integer instead of int64."""

_MOST_PATHS = 50_000

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Layer:
    """Edges of one layer of a decision diagram: source state, value code, target state."""

    source: Ints  # (e,), ascending
    code: Codes  # (e,), ascending within a source; -1: inactive
    target: Ints  # (e,)
    states: int


@dataclass(frozen=True)
class Step:
    """Edges of one layer of a decision diagram, grouped by source state, with path counts."""

    code: Codes  # (e,)
    source: Ints  # (e,)
    target: Ints  # (e,)
    start: Ints  # (s + 1,): index of each state's first edge
    before: Array  # (e + 1,): paths of all earlier edges of the layer

    @property
    def states(self) -> int:
        return len(self.start) - 1

    @cached_property
    def keys(self) -> Ints:
        """Sorted search key of each edge, (e,): source state and value code in one integer."""
        return self.source * self.span + self.code + 1

    @cached_property
    def span(self) -> int:
        return int(self.code.max(initial=0)) + 2

    @cached_property
    def ends(self) -> Floats:
        """Source state of each edge plus the cumulative fraction of its paths, (e,), ascending.

        A uniform number in [0, 1) added to a state finds an edge in proportion to its paths.
        """
        first = self.before[self.start[:-1]]
        total = self.before[self.start[1:]] - first
        passed = self.before[1:] - first[self.source]
        share = np.asarray(passed / total[self.source], dtype=np.float64)
        share[self.start[1:] - 1] = 1.0  # a rounding error would select the next state's edges
        return self.source + share


class Diagram:
    """Ranked set of the legal combinations of some parameters, in lexicographic order.

    The order follows the layers, each of which sets one parameter: ``order`` holds, for each layer,
    the index of its parameter in a combination. A rank is the index of a combination in this order.
    """

    def __init__(self, layers: Sequence[Layer], order: Sequence[int]) -> None:
        self.order = list(order)
        self.steps, self.count = _prune_and_count(layers)

    @property
    def edges(self) -> int:
        """Number of edges: the cost of one pass over the graph."""
        return sum(len(step.code) for step in self.steps)

    def at(
        self,
        ranks: Array,  # (n,), whole numbers below the count
    ) -> Codes:
        """Return the combinations at these indices of the lexicographic order, (n, k)."""
        codes = np.zeros((len(ranks), len(self.steps)), dtype=np.int32)
        state, rest = np.zeros(len(ranks), dtype=np.int64), ranks
        for place, step in zip(self.order, self.steps, strict=True):
            wanted = step.before[step.start[state]] + rest.astype(step.before.dtype)
            edge = np.searchsorted(step.before, wanted, side="right") - 1
            codes[:, place], rest = step.code[edge], wanted - step.before[edge]
            state = step.target[edge]
        return codes

    def ranks(
        self,
        codes: Codes,  # (n, k)
    ) -> Array:
        """Return the lexicographic index of each combination, (n, k); -1 if it is illegal."""
        rank = np.zeros(len(codes), dtype=np.int64 if self.count < _WORD else object)
        state = np.zeros(len(codes), dtype=np.int64)
        lost = np.full(len(codes), not self.count)
        if not self.count:
            return np.full(len(codes), -1)
        for place, step in zip(self.order, self.steps, strict=True):
            wanted = state * step.span + codes[:, place] + 1
            edge = np.minimum(np.searchsorted(step.keys, wanted), len(step.keys) - 1)
            lost |= (step.keys[edge] != wanted) | (codes[:, place] + 1 >= step.span)
            rank = rank + (step.before[edge] - step.before[step.start[state]]).astype(rank.dtype)
            state = step.target[edge]
        rank[lost] = -1
        return rank

    def draw(self, count: int, rng: np.random.Generator) -> Codes:
        """Return combinations drawn uniformly, (count, k).

        Beyond 2**62 combinations, the probability of each is uniform to a relative error of 1e-9.
        """
        if self.count < _WORD:
            return self.at(rng.integers(self.count, size=count))
        return self.spread(rng.random((count, len(self.steps))))

    def spread(
        self,
        points: Floats,  # (n, k), in [0, 1), one coordinate per layer
    ) -> Codes:
        """Map uniform points of the unit cube to uniformly drawn legal combinations, (n, k)."""
        codes = np.zeros((len(points), len(self.steps)), dtype=np.int32)
        state = np.zeros(len(points), dtype=np.int64)
        for turn, (place, step) in enumerate(zip(self.order, self.steps, strict=True)):
            edge = np.searchsorted(step.ends, state + points[:, turn], side="right")
            edge = np.clip(edge, step.start[state], step.start[state + 1] - 1)
            codes[:, place] = step.code[edge]
            state = step.target[edge]
        return codes

    def occurrences(self, sizes: Sequence[int]) -> list[list[int]]:
        """Return, by parameter, how many legal combinations have each value; index 0 is absence.

        Args:
            sizes: number of values of each parameter.
        """
        found: list[list[int]] = [[] for _ in sizes]
        kind: type = np.int64 if self.count < _WORD else object
        paths: Array = np.array([1] if self.count else [], dtype=kind)
        for place, step in zip(self.order, self.steps, strict=True):
            through = paths[step.source] * np.diff(step.before).astype(kind)
            counts: Array = np.zeros(sizes[place] + 1, dtype=kind)
            np.add.at(counts, step.code + 1, through)
            found[place] = [int(value) for value in counts]
            after: Array = np.zeros(int(step.target.max(initial=-1)) + 1, dtype=kind)
            np.add.at(after, step.target, paths[step.source])
            paths = after
        return found

    def nearest(
        self,
        costs: Sequence[Floats],  # one per parameter, (values + 1,): of inactive, then each code
    ) -> Codes:
        """Return the legal combination of least total cost, (k,), found as a shortest path.

        Args:
            costs: for each parameter an array: the cost of being inactive, then the cost of each
                value.
        """
        ahead = self._ahead(costs)
        codes, state = np.zeros(len(self.steps), dtype=np.int32), 0
        for turn, (place, step) in enumerate(zip(self.order, self.steps, strict=True)):
            edges = np.arange(step.start[state], step.start[state + 1])
            total = costs[place][step.code[edges] + 1] + ahead[turn + 1][step.target[edges]]
            edge = edges[int(np.argmin(total))]
            codes[place], state = step.code[edge], int(step.target[edge])
        return codes

    def least_other(
        self,
        costs: Sequence[Floats],
        row: Codes,  # (k,)
    ) -> float:
        """Return the least total cost of any combination other than ``row``, or infinity.

        Args:
            costs: for each parameter an array: the cost of being inactive, then the cost of each
                value.
            row: the combination to exclude.
        """
        ahead, other = np.zeros(1), np.full(1, np.inf)
        for place, step in zip(reversed(self.order), reversed(self.steps), strict=True):
            cost = costs[place][step.code + 1]
            same = step.code == row[place]
            later = cost + np.where(same, other[step.target], ahead[step.target])
            other = np.minimum.reduceat(later, step.start[:-1])
            ahead = np.minimum.reduceat(cost + ahead[step.target], step.start[:-1])
        return float(other[0])

    def within(
        self,
        costs: Sequence[Floats],
        most: float,
    ) -> Codes | None:
        """Return all combinations of total cost up to ``most``, (n, k); ``None`` if too many.

        Args:
            costs: for each parameter an array: the cost of being inactive, then the cost of each
                value.
            most: upper bound on the total cost.
        """
        ahead = self._ahead(costs)
        codes = np.zeros((1, len(self.steps)), dtype=np.int32)
        state, spent = np.zeros(1, dtype=np.int64), np.zeros(1)
        for turn, (place, step) in enumerate(zip(self.order, self.steps, strict=True)):
            counts = step.start[state + 1] - step.start[state]
            row = np.repeat(np.arange(len(state)), counts)
            first = np.repeat(np.cumsum(counts) - counts, counts)
            edge = step.start[state][row] + np.arange(len(row)) - first
            cost = spent[row] + costs[place][step.code[edge] + 1]
            keep = cost + ahead[turn + 1][step.target[edge]] <= most
            row, edge = row[keep], edge[keep]
            if len(row) > _MOST_PATHS:
                return None
            codes = codes[row]
            codes[:, place] = step.code[edge]
            state, spent = step.target[edge], cost[keep]
        return codes

    def _ahead(self, costs: Sequence[Floats]) -> list[Floats]:
        """Return the least total cost from each state to the end of the diagram, by layer."""
        ahead = [np.zeros(1)]
        for place, step in zip(reversed(self.order), reversed(self.steps), strict=True):
            total = costs[place][step.code + 1] + ahead[0][step.target]
            ahead.insert(0, np.minimum.reduceat(total, step.start[:-1]))
        return ahead


def _prune_and_count(layers: Sequence[Layer]) -> tuple[list[Step], int]:
    """Remove the states without a path to the end; return the layers and the number of paths."""
    paths = _paths(layers)
    steps: list[Step] = []
    names = np.zeros(1, dtype=np.int64)  # new numbers of the states that lead to the end
    for turn, layer in enumerate(layers):
        after = paths[turn + 1]
        alive = np.asarray(after[layer.target] > 0, dtype=bool)
        renumbered = np.cumsum(np.asarray(after > 0, dtype=bool)) - 1
        source, code = names[layer.source[alive]], layer.code[alive]
        target = renumbered[layer.target[alive]]
        through = after[layer.target[alive]].astype(paths[turn].dtype)
        before = np.concatenate([np.zeros(1, dtype=through.dtype), np.cumsum(through)])
        states = int(np.asarray(paths[turn] > 0, dtype=bool).sum())
        start = np.searchsorted(source, np.arange(states + 1))
        steps.append(Step(code, source, target, start, before))
        names = renumbered
    return steps, int(paths[0][0])


def _paths(layers: Sequence[Layer]) -> list[Array]:
    """Return the number of paths from each state to the end, layer by layer.

    A layer whose counts could overflow int64 has Python integers.
    """
    paths: list[Array] = [np.ones(layers[-1].states if layers else 1, dtype=np.int64)]
    for turn in range(len(layers) - 1, -1, -1):
        layer, after = layers[turn], paths[0]
        states = layers[turn - 1].states if turn else 1
        large = after.dtype == object or float(after[layer.target].sum(dtype=float)) > _WORD / 2
        kind = np.dtype(object if large else np.int64)
        total = np.zeros(states, dtype=kind)
        np.add.at(total, layer.source, after[layer.target].astype(kind))
        paths.insert(0, total)
    return paths


def product_edges(states: Ints, active: Mask, size: int) -> tuple[Ints, Codes]:
    """Return all edges of a parameter: one per value from active states, else one (code -1).

    Args:
        states: indices of the source states, (s,).
        active: whether the parameter is active in each of them, (s,).
        size: number of the parameter's values.
    """
    counts = np.where(active, size, 1)
    source = np.repeat(states, counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    code = np.arange(len(source)) - first
    code[np.repeat(~active, counts)] = -1
    return source, code.astype(np.int32)
