"""Component of a legal set: a group of coupled parameters with its legal combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.legal_set.decision_diagram import Codes, Diagram
from dse.core.legal_set.diagram_builder import grown
from dse.core.legal_set.permutations import Orders
from dse.core.legal_set.relaxed_budget import RelaxedBudget
from dse.core.parameter import Finite
from dse.core.values import Array, Floats, Ints, Mask, Value

LISTED_ROWS = 65_536
"""Most combinations that are cached as a table, which is the fastest to look up."""

TRIES = 2_000_000
"""Draws from a superset after which rejection sampling may give up; fewer if rows are long."""

_TRIED_CELLS = 40_000_000
_DRAWN_ROWS = 65_536
_DRAWN_CELLS = 8_000_000
_LEAST_BLOCK = 1_024
_MOST_CELLS = 4_000_000
_LOOKED_UP = 32
"""Number of combinations from which on looking them up is faster than evaluating the rules."""

Graph = Diagram | Orders | RelaxedBudget
"""Representation of the combinations: a diagram, all permutations, or a superset (a budget)."""


@dataclass(frozen=True, kw_only=True)
class Component:
    """Group of parameters that rules couple, with the group's legal value combinations.

    A combination of the k parameters is a row of codes: indices into the domains, -1 for inactive.
    ``order`` holds the indices of the parameters in enumeration order. ``table`` holds all
    combinations of a small group; a larger one has a ``graph``. ``dropped`` are rules that would
    make the graph too large: the graph then represents a superset, and these rules are enforced by
    rejection.
    """

    parameters: tuple[Finite, ...]
    conditions: Mapping[str, Expression]
    constraints: tuple[Expression, ...]
    order: tuple[int, ...]
    table: Codes | None = None  # (r, k), -1 for inactive
    graph: Graph | None = None
    dropped: tuple[Expression, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def count(self) -> int | None:
        """Number of legal combinations; ``None`` if unknown."""
        return None if self.dropped and self.bound else self.bound

    @property
    def bound(self) -> int:
        """Upper bound on the number of legal combinations; exact if no rule is dropped."""
        return len(self.table) if self.table is not None else self.diagram.count

    @cached_property
    def diagram(self) -> Graph:
        """Indexed set of all legal combinations: a decision diagram, or a closed form instead."""
        if self.graph is not None:
            return self.graph
        listed = [self.parameters[place] for place in self.order]
        return Diagram(grown(listed, self.conditions, self.constraints), self.order)

    @cached_property
    def rows(self) -> Codes | None:
        """Codes of all legal combinations, (count, k), -1 for inactive; ``None`` if too many."""
        if self.table is not None and not self.dropped:
            return self.table
        if self.count is None or self.count > LISTED_ROWS:
            return None
        return self.diagram.at(np.arange(self.count))

    @cached_property
    def _columns(self) -> Codes | None:
        """Contiguous transpose of :attr:`rows`: lookups read it column by column."""
        return None if self.rows is None else np.ascontiguousarray(self.rows.T)

    def columns(self, codes: Codes) -> dict[str, Column]:
        """Return the parameter values of n combinations, given as codes (n, k), by name."""
        return columns_of(self.parameters, codes)

    @property
    def none(self) -> Codes:
        """Empty array of combinations of the component's k parameters, (0, k)."""
        return np.zeros((0, len(self.parameters)), dtype=np.int32)

    def sample(self, count: int, rng: np.random.Generator) -> Codes:
        """Draw legal combinations uniformly, (n, k); fewer than ``count`` if they are rare."""
        if not self.bound:
            return self.none
        if self.rows is not None:
            return self.rows[rng.integers(len(self.rows), size=count)]
        if not self.dropped:
            return self.diagram.draw(count, rng)
        return self._sample_by_rejection(count, rng)

    def _sample_by_rejection(self, count: int, rng: np.random.Generator) -> Codes:
        """Draw from the graph's superset and return the draws that satisfy the dropped rules.

        The result is uniform over the legal combinations, and may have fewer than ``count`` of
        them.
        """
        found, have, tries = [self.none], 0, 0
        width = max(len(self.parameters), 1)
        while have < count and tries < max(self.tries, 4 * count):
            share = (have + 1) / (tries + 1)
            block = int(min(1.1 * (count - have) / share, _MOST_CELLS / width))
            drawn = self.diagram.draw(max(block, _LEAST_BLOCK), rng)
            kept = drawn[self.keeps_dropped_rules(drawn)]
            found.append(kept[: count - have])
            have, tries = have + len(found[-1]), tries + len(drawn)
        return np.concatenate(found)

    @property
    def tries(self) -> int:
        """Number of draws from the superset that rejection sampling tries before giving up."""
        return min(TRIES, max(_TRIED_CELLS // max(len(self.names), 1), 100 * _LEAST_BLOCK))

    @cached_property
    def drawn(self) -> Codes:
        """Fixed random sample of legal combinations, for searches in sets too large to list."""
        rows = min(_DRAWN_ROWS, _DRAWN_CELLS // max(len(self.parameters), 1))
        return self.sample(rows, np.random.default_rng(0))

    def at_ranks(
        self,
        ranks: Array,  # (n,), below the count
    ) -> Codes:
        """Return the combinations at these indices of the enumeration order, (n, k)."""
        if self._columns is not None:
            return np.take(self._columns, ranks.astype(np.int64, copy=False), axis=1).T
        return self.diagram.at(ranks)

    def at(
        self,
        points: Floats,  # (n, k), in [0, 1)
    ) -> tuple[Codes, Mask]:
        """Map points of the unit cube to combinations, (n, k), with a mask of the legal ones, (n,).

        Only the rules that the graph leaves out (``dropped``) can make a combination illegal.
        """
        if not self.bound:
            return np.zeros(points.shape, dtype=np.int32), np.zeros(len(points), dtype=bool)
        codes = self.diagram.spread(points)
        return codes, self.keeps_dropped_rules(codes)

    def indices(self, codes: Codes) -> Array:
        """Return the index of each combination, (n, k), in the enumeration, (n,).

        It is -1 for illegal combinations.
        """
        ranks = self.diagram.ranks(codes)
        if self.dropped:
            ranks[~self.keeps_dropped_rules(codes)] = -1
        return ranks

    @cached_property
    def _listed(self) -> Ints | None:
        """Sorted numbers of all legal combinations; ``None`` if they are too many, or none."""
        whole = math.prod(len(parameter.values) + 1 for parameter in self.parameters)
        if self.rows is None or not len(self.rows) or whole > np.iinfo(np.int64).max:
            return None
        return np.sort(self._number(self.rows))

    def _number(self, codes: Codes) -> Ints:
        """Return combinations as numbers in mixed radix, where inactive is digit 0, (n,)."""
        numbers = np.zeros(len(codes), dtype=np.int64)
        for place, parameter in enumerate(self.parameters):
            numbers *= len(parameter.values) + 1
            numbers += codes[:, place] + 1
        return numbers

    @cached_property
    def moves(self) -> dict[bytes, tuple[Codes, Floats]]:
        """Cache of nearby combinations, filled by :mod:`dse.core.variation`."""
        return {}

    def legal(self, codes: Codes) -> Mask:
        """Return which of n combinations satisfy every rule and activity condition, (n,)."""
        if len(codes) < _LOOKED_UP or self._listed is None:
            return self.keeps_rules(codes)
        numbers, listed = self._number(codes), self._listed
        return np.asarray(np.take(listed, listed.searchsorted(numbers), mode="clip") == numbers)

    def keeps_rules(self, codes: Codes) -> Mask:
        """Return which of n combinations are legal, (n,), by evaluating every rule for each."""
        columns = self.columns(codes)
        keep = np.ones(len(codes), dtype=bool)
        for place, parameter in enumerate(self.parameters):
            rule = self.conditions.get(parameter.name)
            if rule is None:
                keep &= codes[:, place] >= 0
            else:
                active = rule.holds(columns, len(codes), unknown=False)
                keep &= active == (codes[:, place] >= 0)
        for rule in self.constraints:
            keep &= rule.holds(columns, len(codes), unknown=True)
        return keep

    def occurrences(self) -> dict[str, list[int]]:
        """Return, by parameter, how many combinations have each value; inactive comes first."""
        sizes = [len(parameter.values) for parameter in self.parameters]
        return dict(zip(self.names, self.diagram.occurrences(sizes), strict=True))

    def keeps_dropped_rules(self, codes: Codes) -> Mask:
        """Return which of n combinations satisfy the rules that the graph leaves out, (n,)."""
        keep = np.ones(len(codes), dtype=bool)
        columns = self.columns(codes) if self.dropped else {}
        for rule in self.dropped:
            keep &= rule.holds(columns, len(codes), unknown=True)
        return keep


def columns_of(parameters: Sequence[Finite], codes: Codes) -> dict[str, Column]:
    """Return the parameter values of n combinations by name; the codes have shape (n, k)."""
    return {
        parameter.name: Column.coded(domain(parameter), codes[:, place])
        for place, parameter in enumerate(parameters)
    }


def domain(parameter: Finite) -> tuple[Value, ...]:
    """Return the parameter's values in the order of their codes."""
    return parameter.values
