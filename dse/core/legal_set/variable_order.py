"""Variable ordering heuristics for the decision diagram of a group of coupled parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heappop, heappush

from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare, Name, Node, children
from dse.core.legal_set.residual_rules import names_of
from dse.core.parameter import Finite

_TERMS = 4_000
"""Most terms of a rule that are inspected."""

_MOST_SEARCHED = 200
"""Largest group, in parameters, for which a narrow order is searched."""

_MOST_STARTS = 8
"""Number of parameters from which the search for a narrow order starts."""


def listing_order(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> list[int]:
    """Return an order of the parameters, as indices, in which rules can be applied early.

    A parameter comes after the parameters that its condition reads. Of the parameters that may come
    next, the order takes the parameter that leaves the fewest parameters of some rule unset; ties
    go to the parameter with the fewest values.

    Args:
        parameters: the group's parameters.
        conditions: activity condition of each parameter that has one.
        constraints: the rules over the group.
    """
    names = [parameter.name for parameter in parameters]
    rank = {name: turn for turn, name in enumerate(dependence_order(names, conditions))}
    sizes = {parameter.name: len(parameter.values) for parameter in parameters}
    rules = [sorted(ties & rank.keys()) for rule in constraints for ties in _ties(rule.node)]
    turns = _Turns(rules, lambda name: (sizes[name], rank[name]))
    parents = {name: set(conditions[name].names) & rank.keys() for name in conditions}
    children: dict[str, list[str]] = {}
    for name, above in parents.items():
        for one in above:
            children.setdefault(one, []).append(name)
    for name in names:
        if not parents.get(name):
            turns.add(name)
    order = list[str]()
    while (best := turns.next()) is not None:
        order.append(best)
        for child in children.get(best, ()):
            parents[child].discard(best)
            if not parents[child]:
                turns.add(child)
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in order]


class _Turns:
    """Priority queue of names; the first one leaves the fewest names to complete a rule."""

    def __init__(
        self, rules: Sequence[Sequence[str]], key: Callable[[str], tuple[int, int]]
    ) -> None:
        self._key = key
        self._rules = rules
        self._missing = [len(rule) for rule in rules]
        self._rules_of: dict[str, list[int]] = {}
        for place, rule in enumerate(rules):
            for name in rule:
                self._rules_of.setdefault(name, []).append(place)
        self._fewest = {
            name: min(self._missing[place] for place in places)
            for name, places in self._rules_of.items()
        }
        self._waiting: list[tuple[int, tuple[int, int], str]] = []
        self._ready: set[str] = set()

    def add(self, name: str) -> None:
        """Make the name a candidate of :meth:`next`: the names that it depends on are done."""
        self._ready.add(name)
        heappush(self._waiting, (self._fewest.get(name, 10**9), self._key(name), name))

    def next(self) -> str | None:
        """Remove and return the best name; ``None`` when the queue is empty."""
        while self._waiting:
            name = heappop(self._waiting)[-1]
            if name in self._ready:
                self._ready.discard(name)
                for place in self._rules_of.get(name, ()):
                    self._shrink(place)
                return name
        return None

    def _shrink(self, place: int) -> None:
        self._missing[place] -= 1
        missing = self._missing[place]
        for name in self._rules[place]:
            if missing < self._fewest[name]:
                self._fewest[name] = missing
                if name in self._ready:
                    heappush(self._waiting, (missing, self._key(name), name))


def frontier_order(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
    usual: Sequence[int],
) -> list[int]:
    """Return an order of the parameters, as indices, that keeps few of them open at any time.

    A parameter is open while it is set and some rule that reads it also reads parameters that are
    not set. Among equal candidates, a parameter that an equation determines from other parameters
    comes last. The result is ``usual`` if no narrower order is found, and in groups too large to
    search.

    Args:
        parameters: the group's parameters.
        conditions: activity condition of each parameter that has one.
        constraints: the rules over the group.
        usual: the default order, as indices into ``parameters``.
    """
    names = [parameter.name for parameter in parameters]
    if len(names) > _MOST_SEARCHED:
        return list(usual)
    known, bits = set(names), {p.name: math.log2(max(len(p.values), 2)) for p in parameters}
    rules = [rule.names & known for rule in constraints]
    rules += [(rule.names & known) | {name} for name, rule in conditions.items()]
    near: dict[str, set[str]] = {name: set() for name in names}
    for rule in rules:
        for name in rule:
            near[name] |= rule - {name}
    parents = {name: conditions[name].names & known - {name} for name in conditions}
    given = {side.name for rule in constraints for side in _find_sides(rule.node)}
    search = _Narrow(names, near, parents, bits, given)
    starts = [name for name in sorted(names, key=lambda n: len(near[n])) if not parents.get(name)]
    found = [[names[place] for place in usual]]
    found += [search.order_from(start) for start in starts[:_MOST_STARTS]]
    order = min(found, key=search.width)
    return [names.index(name) for name in order]


@dataclass(frozen=True)
class _Narrow:
    """Greedy search for an order in which few parameters are open at any time.

    ``near`` holds, by name of a parameter, the names that share a rule with it; ``parents`` holds
    the names that have to come before it; ``bits`` is the binary logarithm of its number of values;
    ``given`` holds the names that an equation determines from other names. A parameter is open
    while it is set and some rule that reads it also reads parameters that are not set.
    """

    names: Sequence[str]
    near: Mapping[str, set[str]]
    parents: Mapping[str, frozenset[str]]
    bits: Mapping[str, float]
    given: set[str]

    def order_from(self, start: str) -> list[str]:
        """Return the greedy order that starts with this name and keeps few parameters open.

        A parameter is open while it is set and some rule that reads it also reads parameters that
        are not set.
        """
        order, left = [start], {name: None for name in self.names if name != start}
        opened = {start}
        while left:
            ready = [name for name in left if not self.parents.get(name, frozenset()) & left.keys()]
            best = min(ready, key=lambda name: self._cost(name, opened, left.keys()))
            order.append(best)
            del left[best]
            opened = {one for one in opened | {best} if self.near[one] & left.keys()}
        return order

    def _cost(self, name: str, opened: set[str], left: Set[str]) -> float:
        waiting = left - {name}
        wide = sum(self.bits[one] for one in opened | {name} if self.near[one] & waiting)
        return wide + 0.5 * (name in self.given) - 0.001 * len(self.near[name] & opened)

    def width(self, order: Sequence[str]) -> tuple[float, float]:
        """Return estimates for a diagram in this order: bits of the largest layer, and states."""
        left, opened, widths = set(order), set[str](), list[float]()
        for name in order:
            left.discard(name)
            opened = {one for one in opened | {name} if self.near[one] & left}
            widths.append(sum(self.bits[one] for one in opened))
        return max(widths), sum(2 ** min(width, 60) for width in widths)


def _find_sides(node: Node) -> list[Name]:
    """Return the names that are a whole side of an equation, such as ``c`` in ``a * b == c``."""
    if not isinstance(node, Compare) or node.operators != ("==",):
        return []
    return [side for side in node.operands if isinstance(side, Name)]


def _ties(node: Node) -> list[frozenset[str]]:
    """Return sets of names to set consecutively: the names of a rule, and the names of each term.

    In ``sum(bits * acts) <= 80`` each product becomes one number if its two factors are set one
    right after the other.
    """
    ties = [names_of(node)]
    waiting = list(children(node))
    for _ in range(_TERMS):
        if not waiting:
            break
        part = waiting.pop()
        names = names_of(part)
        if len(names) > 1:
            waiting += children(part)
            if len(names) < len(ties[0]):
                ties.append(names)
    return ties


def dependence_order(names: Sequence[str], conditions: Mapping[str, Expression]) -> list[str]:
    """Return the names in topological order: each after the names that its condition reads."""
    order: dict[str, None] = {}
    known = set(names)
    for name in names:
        waiting = [name]
        while waiting:
            rule = conditions.get(waiting[-1])
            parents = sorted((rule.names & known) - order.keys() - {waiting[-1]}) if rule else []
            if parents and len(waiting) <= len(known):  # a cycle would never end
                waiting.append(parents[0])
            else:
                order[waiting.pop()] = None
    return list(order)
