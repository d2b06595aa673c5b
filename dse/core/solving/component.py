"""A group of coupled parameters and its legal combinations, counted and found without listing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dse.core.batch import Column
from dse.core.expression import Expression
from dse.core.parameter import Finite
from dse.core.solving.diagram import Diagram
from dse.core.solving.growth import Codes, TooWideError, grown
from dse.core.solving.ordering import dependence_order, listing_order
from dse.core.solving.orders import Orders, is_order
from dse.core.values import Array, Floats, Mask, Value

LISTED_ROWS = 65_536
"""Up to here the combinations are kept as a table: looking them up is fastest."""

TRIED_ROWS = 16_384
"""Up to here all combinations are tried, which takes less time than to build a graph."""

_DRAWS = 200
_DRAWN_ROWS = 65_536


@dataclass(frozen=True, kw_only=True)
class Component:
    """Parameters that rules tie together, directly or through others.

    ``order`` are the places of the parameters in the order in which their combinations are
    listed. ``table`` holds all combinations of a small group; a larger one has its ``graph``.
    ``dropped`` are rules that would need too large a graph: it does not know them, and they are
    kept by rejection.
    """

    parameters: tuple[Finite, ...]
    conditions: Mapping[str, Expression]
    constraints: tuple[Expression, ...]
    order: tuple[int, ...]
    table: Codes | None = None  # (r, k), -1 for inactive
    graph: Diagram | Orders | None = None
    dropped: tuple[Expression, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def count(self) -> int | None:
        """How many combinations are legal; ``None`` where that is not known."""
        return None if self.dropped and self.bound else self.bound

    @property
    def bound(self) -> int:
        """How many combinations are legal at most."""
        return len(self.table) if self.table is not None else self.diagram.count

    @cached_property
    def diagram(self) -> Diagram | Orders:
        """The graph of all combinations, or what knows them without one."""
        if self.graph is not None:
            return self.graph
        listed = [self.parameters[place] for place in self.order]
        return Diagram(grown(listed, self.conditions, self.constraints), self.order)

    @cached_property
    def rows(self) -> Codes | None:
        """All combinations by rank, (count, k), -1 for inactive; ``None`` if there are many."""
        if self.table is not None and not self.dropped:
            return self.table
        if self.count is None or self.count > LISTED_ROWS:
            return None
        return self.diagram.at(np.arange(self.count))

    @cached_property
    def _columns(self) -> Codes | None:
        """The transposed :attr:`rows`: whole columns are read, one after the other."""
        return None if self.rows is None else np.ascontiguousarray(self.rows.T)

    def columns(self, codes: Codes) -> dict[str, Column]:
        """The natural values of (n, k) codes, by name."""
        return columns_of(self.parameters, codes)

    @property
    def none(self) -> Codes:
        """No combination at all, (0, k)."""
        return np.zeros((0, len(self.parameters)), dtype=np.int32)

    def sample(self, count: int, rng: np.random.Generator) -> Codes:
        """Legal combinations drawn uniformly, (n, k); fewer than ``count`` when hard to find."""
        if not self.bound:
            return self.none
        if self.rows is not None:
            return self.rows[rng.integers(len(self.rows), size=count)]
        if not self.dropped:
            return self.diagram.draw(count, rng)
        found: list[Codes] = []
        have = 0
        for _ in range(_DRAWS):
            drawn = self.diagram.draw(max(2 * count, 1024), rng)
            kept = drawn[self.undropped(drawn)]
            found.append(kept[: count - have])
            have += len(found[-1])
            if have >= count:
                break
        return np.concatenate(found)

    @cached_property
    def drawn(self) -> Codes:
        """Many combinations, the same each time: where there are too many to look at all."""
        return self.sample(_DRAWN_ROWS, np.random.default_rng(0))

    def at_ranks(
        self,
        ranks: Array,  # (n,), below the count
    ) -> Codes:
        """The combinations of these ranks, (n, k)."""
        if self._columns is not None:
            return np.take(self._columns, ranks.astype(np.int64, copy=False), axis=1).T
        return self.diagram.at(ranks)

    def at(
        self,
        points: Floats,  # (n, k), in [0, 1)
    ) -> tuple[Codes, Mask]:
        """The combinations at points of the cube, and which of them are legal."""
        if not self.bound:
            return np.zeros(points.shape, dtype=np.int32), np.zeros(len(points), dtype=bool)
        codes = self.diagram.spread(points)
        return codes, self.undropped(codes)

    def indices(self, codes: Codes) -> Array:
        """The rank of each combination, (n,); -1 for one that is not legal."""
        ranks = self.diagram.ranks(codes)
        if self.dropped:
            ranks[~self.undropped(codes)] = -1
        return ranks

    def legal(self, codes: Codes) -> Mask:
        """Which combinations keep every rule of the group, (n,)."""
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
        """In how many combinations each value of each parameter occurs; inactive first."""
        sizes = [len(parameter.values) for parameter in self.parameters]
        return dict(zip(self.names, self.diagram.occurrences(sizes), strict=True))

    def undropped(self, codes: Codes) -> Mask:
        """Which of the diagram's combinations keep the dropped rules too, (n,)."""
        keep = np.ones(len(codes), dtype=bool)
        columns = self.columns(codes) if self.dropped else {}
        for rule in self.dropped:
            keep &= rule.holds(columns, len(codes), unknown=True)
        return keep


def solved(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> Component:
    """The component of these parameters.

    Rules that would need too large a graph are dropped from it, ever more, until it fits.
    """
    sizes = [len(p.values) + (p.name in conditions) for p in parameters]
    if math.prod(sizes) <= TRIED_ROWS:
        return _tried(parameters, conditions, constraints)
    if is_order(parameters, conditions, constraints):
        return Component(
            parameters=tuple(parameters),
            conditions=conditions,
            constraints=tuple(constraints),
            order=tuple(range(len(parameters))),
            graph=Orders(len(parameters)),
        )
    kept, dropped, many = list(constraints), list[Expression](), 1
    while True:
        turns = listing_order(parameters, conditions, kept)
        try:
            graph = Diagram(grown([parameters[p] for p in turns], conditions, kept), turns)
        except TooWideError as error:
            given_up = error.rules[:many]
            dropped += [kept[place] for place in sorted(given_up)]
            kept = [rule for place, rule in enumerate(kept) if place not in given_up]
            many *= 2
            continue
        return Component(
            parameters=tuple(parameters),
            conditions=conditions,
            constraints=tuple(constraints),
            order=tuple(turns),
            graph=graph,
            dropped=tuple(dropped),
        )


def _tried(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> Component:
    """The component with the table of what is left of all combinations, each of them tried."""
    names = [parameter.name for parameter in parameters]
    component = Component(
        parameters=tuple(parameters),
        conditions=conditions,
        constraints=tuple(constraints),
        order=tuple(names.index(name) for name in dependence_order(names, conditions)),
    )
    axes = [
        np.arange(-1 if p.name in component.conditions else 0, len(p.values), dtype=np.int32)
        for p in (component.parameters[place] for place in component.order)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    codes = np.empty_like(grid)
    codes[:, component.order] = grid
    if component.constraints or component.conditions:
        codes = codes[component.legal(codes)]
    return replace(component, table=codes)


def columns_of(parameters: Sequence[Finite], codes: Codes) -> dict[str, Column]:
    """The natural values of (n, k) codes, by name."""
    return {
        parameter.name: Column.coded(domain(parameter), codes[:, place])
        for place, parameter in enumerate(parameters)
    }


def domain(parameter: Finite) -> tuple[Value, ...]:
    """The parameter's legal values in order."""
    return parameter.values
