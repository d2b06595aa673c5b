"""Solver of one group of coupled parameters: enumeration, decision diagram, or relaxation.

The result is exact if it fits in memory. Where the diagram would be too large, the group is relaxed
to a superset of the legal combinations: rules are left out of the diagram, or the partial sums of a
budget are rounded. A small superset is enumerated and filtered, which is exact again; a large one
is sampled by rejection, so that draws remain uniform.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dse.core.expressions.expression import Expression
from dse.core.legal_set import diagram_builder as growth
from dse.core.legal_set.blocks import ParameterBlock, fold_rules
from dse.core.legal_set.component import Component, Graph
from dse.core.legal_set.decision_diagram import Codes, Diagram, Layer
from dse.core.legal_set.diagram_builder import TooWideError, grown
from dse.core.legal_set.linear_constraint import Linear, least_edges, linear_of
from dse.core.legal_set.permutations import order_of
from dse.core.legal_set.relaxed_budget import RelaxedBudget
from dse.core.legal_set.variable_order import dependence_order, frontier_order, listing_order
from dse.core.parameter import Finite

TRIED_ROWS = 16_384
"""Most combinations that are enumerated by brute force, which is faster than to build a graph."""

FILTERED_ROWS = 10_000_000
"""Largest superset that is enumerated and filtered."""

_FILTERED_CELLS = 60_000_000
"""Most values (rows times parameters) of a filtered table; above it, rejection sampling is used."""

_CHUNK = 262_144

_LEAST_SHARE, _SMALL_SHARE = 16, 4
"""Divisors of the edge limit for the first and the second attempt to build a graph."""

_TRIED_SOON = 2_000_000
"""Most edges the first attempt may try at one parameter; above it, filtering is faster."""

_FILTERED_SOON = 2_000_000
"""Most combinations for which filtering is faster than to build a medium-sized graph."""

_STATES = 500
_REFINEMENTS = 8
_MOST_EDGES = 120_000_000
"""Edge limit up to which a budget's grid is refined while too many draws break the budget."""

_MANY = 500
"""Number of parameters from which a single sum is counted by its partial sums directly."""

_PILOTS = 1_000
_ENOUGH = 0.5
"""Legal fraction from which a superset is not improved further."""

_ENOUGH_OF_WIDE = 0.01
"""Legal fraction that suffices if a linear constraint needs a graph that takes a minute."""

Conditions = Mapping[str, Expression]


@dataclass(frozen=True)
class _Group:
    """Group to be solved: coupled parameters, their activity conditions and constraints."""

    parameters: tuple[Finite, ...]
    conditions: Conditions
    constraints: tuple[Expression, ...]

    @cached_property
    def folded(self) -> tuple[list[ParameterBlock], list[Expression]]:
        """Parameter blocks formed by the small rules, and the rules that are not small.

        A block is a set of jointly chosen parameters with its allowed combinations.
        """
        return fold_rules(self.parameters, self.constraints)

    @cached_property
    def wide(self) -> list[int]:
        """Indices of the linear constraints whose diagram alone would be too large."""
        most = growth.MAX_TOTAL // _SMALL_SHARE
        sizes = {p.name: len(p.values) for p in self.parameters}
        linears = {
            place: linear_of(self.parameters, rule)
            for place, rule in enumerate([] if self.conditions else self.constraints)
            if math.prod(sizes[name] for name in rule.names & sizes.keys()) > most
        }
        return [
            place
            for place, linear in linears.items()
            if linear is not None
            and least_edges(linear, most) > most
            and least_edges(linear.over(self.folded[0]), most) > most
        ]

    def component(
        self, graph: Graph, order: Sequence[int], dropped: Sequence[Expression] = ()
    ) -> Component:
        return Component(
            parameters=self.parameters,
            conditions=self.conditions,
            constraints=self.constraints,
            order=tuple(order),
            graph=graph,
            dropped=tuple(dropped),
        )


def solve_component(
    parameters: Sequence[Finite],
    conditions: Conditions,
    constraints: Sequence[Expression],
) -> Component:
    """Return the legal combinations of coupled parameters, exact if they fit in memory.

    Args:
        parameters: the group's parameters.
        conditions: activity condition of each parameter that has one.
        constraints: the rules over the group.
    """
    group = _Group(tuple(parameters), conditions, tuple(constraints))
    sizes = [len(p.values) + (p.name in conditions) for p in parameters]
    if math.prod(sizes) <= min(TRIED_ROWS, _FILTERED_CELLS // len(sizes)):
        return _enumerate_group(group)
    among = order_of(parameters, conditions, constraints)
    if among is not None and len(constraints) == 1:
        return group.component(among[0], range(len(parameters)))
    lone = _build_sum(group)
    if lone is not None:
        return lone
    if group.wide:
        return _relax_group(group, group.wide)
    usual = listing_order(parameters, conditions, constraints)
    found = _grown(group, usual, _LEAST_SHARE, most_tried=_TRIED_SOON)
    if not isinstance(found, Component):
        found = _filtered_soon(group, found) or _grown(group, usual, _SMALL_SHARE)
    return found if isinstance(found, Component) else _relax_group(group, found)


def _filtered_soon(group: _Group, wide: Sequence[int]) -> Component | None:
    """Drop one rule, and filter the resulting superset by it; return the exact component.

    The rule that causes most diagram states is dropped. The result is ``None`` if the superset is
    too large to filter quickly.
    """
    if len(group.constraints) == 1:
        return None
    dropped = [group.constraints[wide[0]]]
    kept = [rule for rule in group.constraints if rule is not dropped[0]]
    usual = listing_order(group.parameters, group.conditions, kept)
    for order in (usual, frontier_order(group.parameters, group.conditions, kept, usual)):
        found = _grown(group, order, _SMALL_SHARE, dropped)
        if isinstance(found, Component):
            return _filter_component(found) if found.bound <= _FILTERED_SOON else None
    return None


def _build_sum(group: _Group) -> Component | None:
    """Return the exact component of one linear constraint with integer costs.

    ``None`` if the group has another form or its diagram does not fit. The general builder would
    read all terms of the sum at each parameter, which takes quadratic time.
    """
    if len(group.constraints) != 1 or group.conditions or len(group.parameters) < _MANY:
        return None
    linear = linear_of(group.parameters, group.constraints[0])
    if linear is None or not linear.is_whole or linear.is_strict or linear.most < 1:
        return None
    edges = sum(len(costs) for costs in linear.costs) * linear.most
    if edges > growth.MAX_TOTAL // _SMALL_SHARE:
        return None
    budget = RelaxedBudget(linear, math.ceil(linear.most))
    if not budget.exact:
        return None
    return group.component(Diagram(budget.layers(), budget.turns), budget.order)


def _relax_group(group: _Group, wide: Sequence[int]) -> Component:
    """Relax the group to a superset of its legal combinations; filter a small superset.

    The smallest superset that is found quickly is used. If it is large and mostly illegal, the
    exact diagram is tried instead.
    """
    small = min(_formulas(group), key=lambda one: one.bound, default=None)
    enough = _ENOUGH_OF_WIDE if group.wide else _ENOUGH
    if small is None or (small.bound > FILTERED_ROWS and _share(small) < enough):
        exact = _grown(group, _narrower(group, group.constraints), _SMALL_SHARE)
        if isinstance(exact, Component):
            return exact
        fewer = _without_rules(group, wide)
        small = fewer if small is None else min([small, fewer], key=lambda one: one.bound)
    listed = _filter_component(small)
    if listed is not None or _share(small) >= enough:
        return listed or small
    exact = _grown(group, _narrower(group, group.constraints), 1)
    return exact if isinstance(exact, Component) else small


def _narrower(group: _Group, kept: Sequence[Expression]) -> list[int]:
    """Return a parameter order (indices) for which the decision diagram is small."""
    usual = listing_order(group.parameters, group.conditions, kept)
    return frontier_order(group.parameters, group.conditions, kept, usual)


def _grown(
    group: _Group,
    order: Sequence[int],
    share: int,
    dropped: Sequence[Expression] = (),
    *,
    most_tried: float = math.inf,
) -> Component | list[int]:
    """Build the diagram of the group without the dropped rules; return its component.

    If the diagram has too many states, return the indices of the rules that cause most of them.
    """
    listed = [group.parameters[place] for place in order]
    kept = [rule for rule in group.constraints if not any(rule is one for one in dropped)]
    try:
        layers = grown(listed, group.conditions, kept, share=share, most_tried=most_tried)
    except TooWideError as error:
        return error.rules
    return group.component(Diagram(layers, order), order, dropped)


def _formulas(group: _Group) -> Iterator[Component]:
    """Yield closed-form supersets of the legal combinations, each of which keeps only one rule.

    That rule is an ``all_different`` (permutations) or a budget (a linear constraint).
    """
    among = order_of(group.parameters, group.conditions, group.constraints)
    if among is not None:
        others = [rule for rule in group.constraints if rule is not among[1]]
        yield group.component(among[0], range(len(group.parameters)), others)
    yield from _budgets(group)


def _without_rules(group: _Group, wide: Sequence[int]) -> Component:
    """Drop rules until the diagram fits; return the component of the resulting superset.

    The rules that cause most states are dropped first, twice as many in each round.
    """
    dropped, many, kept = list[Expression](), 1, list(group.constraints)
    while True:
        dropped += [kept[place] for place in sorted(wide[:many])]
        kept = [rule for rule in group.constraints if not any(rule is one for one in dropped)]
        found = _grown(group, _narrower(group, kept), _SMALL_SHARE, dropped)
        if isinstance(found, Component):
            return found
        wide, many = found, 2 * many


def _budgets(group: _Group) -> Iterator[Component]:
    """Yield a superset for each budget (linear constraint): its partial sums are rounded.

    The rounding is refined until most draws are legal. Small rules first shorten domains and join
    parameters into blocks; all other rules are ignored.
    """
    if group.conditions:
        return
    blocks, left = group.folded
    if not left or not all(len(block.rows) for block in blocks):
        yield _build_from_blocks(group, blocks)
        return
    for rule in left:
        linear = linear_of(group.parameters, rule)
        if linear is not None:
            budget = _refine_budget(group, rule, linear)
            yield group.component(budget, budget.order, left)


def _build_from_blocks(group: _Group, blocks: Sequence[ParameterBlock]) -> Component:
    """Return the component of a group whose rules were all applied within parameter blocks.

    A block is a set of jointly chosen parameters with its allowed combinations. The component is
    empty if some block has none.
    """
    order = range(len(group.parameters))
    rows = np.zeros((0, len(order)), dtype=np.int32)
    if len(blocks) == 1:
        rows = np.unique(blocks[0].rows[:, np.argsort(blocks[0].places)], axis=0)
    return group.component(Diagram(_layers(rows), order), order)


def _refine_budget(group: _Group, rule: Expression, linear: Linear) -> RelaxedBudget:
    """Return the rule's budget with the coarsest rounding for which most draws are legal.

    If no rounding that fits in memory achieves this, the finest rounding that fits is returned.
    """
    blocks, _ = group.folded
    budget = RelaxedBudget(linear, _STATES, blocks)
    for fineness in range(1, _REFINEMENTS):
        alone = group.component(budget, budget.order, [rule])
        if _share(alone) >= _ENOUGH or 2 * budget.edges > _MOST_EDGES:
            break
        budget = RelaxedBudget(linear, _STATES << fineness, blocks)
    return budget


def _share(component: Component) -> float:
    """Estimate the legal fraction of a component's superset from a few random draws."""
    if not component.bound:
        return 1.0
    codes = component.diagram.draw(_PILOTS, np.random.default_rng(0))
    return float(component.keeps_dropped_rules(codes).mean())


def _filter_component(component: Component) -> Component | None:
    """Return the component with its legal combinations only, by listing its superset.

    It is ``None`` if the superset or the result is too large.
    """
    if component.bound > FILTERED_ROWS:
        return None
    graph, found, cells = component.diagram, [component.none], 0
    starts = range(0, graph.count, _CHUNK)
    each = (graph.at(np.arange(start, min(start + _CHUNK, graph.count))) for start in starts)
    for codes in graph.chunks(_CHUNK) if isinstance(graph, RelaxedBudget) else each:
        found.append(codes[component.keeps_dropped_rules(codes)])
        cells += found[-1].size
        if cells > _FILTERED_CELLS:
            return None
    rows = np.concatenate(found)
    exact = Diagram(_layers(rows[:, component.order]), component.order)
    return replace(component, graph=exact, dropped=())


def _layers(
    rows: Codes,  # (r, k), in the order of the layers, each once and sorted
) -> list[Layer]:
    """Return the layers of a graph whose paths are these combinations.

    A state is a distinct prefix of the combinations.
    """
    layers = list[Layer]()
    before = np.zeros(len(rows), dtype=np.int64)
    new = np.zeros(len(rows), dtype=bool)
    new[:1] = True
    for place in range(rows.shape[1]):
        new[1:] |= rows[1:, place] != rows[:-1, place]
        after = np.cumsum(new) - 1
        first = np.flatnonzero(new)
        last = place == rows.shape[1] - 1
        target = np.zeros(len(first), dtype=np.int64) if last else after[first]
        states = min(len(first), 1) if last else len(first)
        layers.append(Layer(before[first], rows[first, place], target, states))
        before = after
    return layers


def _enumerate_group(group: _Group) -> Component:
    """Return the component with the table of its legal combinations, found by enumeration."""
    names = [parameter.name for parameter in group.parameters]
    order = dependence_order(names, group.conditions) if group.conditions else names
    component = Component(
        parameters=group.parameters,
        conditions=group.conditions,
        constraints=group.constraints,
        order=tuple(names.index(name) for name in order),
    )
    axes = [
        np.arange(-1 if p.name in component.conditions else 0, len(p.values), dtype=np.int32)
        for p in (component.parameters[place] for place in component.order)
    ]
    row = np.arange(math.prod(len(axis) for axis in axes))
    codes = np.empty((len(row), len(axes)), dtype=np.int32)
    repeats = len(row)
    for place, axis in zip(component.order, axes, strict=True):  # the last one runs fastest
        repeats //= len(axis)
        codes[:, place] = axis[row // repeats % len(axis)]
    if component.constraints or component.conditions:
        codes = codes[component.legal(codes)]
    return replace(component, table=codes)
