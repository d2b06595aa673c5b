"""Between which numbers a formula lies when only a part of its parameters is set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Binary, Call, Compare, Lookup, Name, Node, Number, Unary
from dse.core.parameter import Finite
from dse.core.values import Floats, Mask, Value

Interval = tuple[Floats | float, Floats | float]
"""The least and the greatest value: in each state, or one number for all."""

_EXACT = 2.0**53

_MARGIN = 1e-9
"""Fractions may round in another order than the rule's own: a near miss decides nothing."""


@dataclass(frozen=True, slots=True)
class Fate:
    """In which states a rule can no longer hold, and in which it can no longer be broken."""

    broken: Mask
    kept: Mask


class Intervals:
    """The intervals of formulas over names.

    Args:
        of: the interval of a name; ``None`` for one that is no number, or can be absent.
        domains: the values of each parameter that cannot be absent.
    """

    def __init__(
        self,
        of: Callable[[str], Interval | None],
        domains: Mapping[str, tuple[Value, ...]],
    ) -> None:
        self._of = of
        self._domains = domains
        self._lookups: dict[int, Interval | None] = {}
        self._spans: dict[int, tuple[Node, Interval]] = {}

    def fate(self, node: Node, size: int) -> Fate | None:
        """Return the outcome decided so far for a comparison; ``None`` where it is unknown.

        Args:
            node: what is left of the rule.
            size: how many states there are.
        """
        if not isinstance(node, Compare) or node.operators[0] not in ("<", "<=", ">", ">=", "=="):
            return None
        left, right = (self.interval(operand) for operand in node.operands)
        if left is None or right is None:
            return None
        if node.operators[0] in (">", ">="):
            left, right = right, left
        with np.errstate(all="ignore"):
            above, below = _surely_less(right, left), _surely_less(left, right)
        equal = node.operators[0] == "=="
        broken = above | below if equal else above
        kept = np.zeros(1, dtype=bool) if equal else below
        if not broken.any() and not kept.any():
            return None
        return Fate(np.broadcast_to(broken, (size,)), np.broadcast_to(kept, (size,)))

    def interval(self, node: Node) -> Interval | None:
        """Return the bounds of the tree's value; ``None`` where they are not known exactly."""
        if isinstance(node, Name):  # the one node that stays the same when its value is set
            return self._compute_exact(node)
        kept = self._spans.get(id(node))
        if kept is not None and kept[0] is node:
            return kept[1]
        exact = self._compute_exact(node)
        if exact is not None and isinstance(exact[0], float) and isinstance(exact[1], float):
            self._spans[id(node)] = (node, exact)
        return exact

    def _compute_exact(self, node: Node) -> Interval | None:
        found = self._interval(node)
        return found if found is not None and _is_exact(found) else None

    def _interval(self, node: Node) -> Interval | None:
        match node:
            case Number():
                return float(node.value), float(node.value)
            case Name():
                return self._of(node.name)
            case Lookup():
                return self._looked_up(node)
            case Unary(operator="-"):
                inner = self.interval(node.operand)
                return None if inner is None else (-inner[1], -inner[0])
            case _:
                return self._joined(node)

    def _joined(self, node: Node) -> Interval | None:
        match node:
            case Call(function="sum") | Call(function="product"):
                return self._over(node.arguments, _JOIN[node.function])
            case Binary(operator="+" | "*"):
                return self._over((node.left, node.right), _JOIN[node.operator])
            case Binary(operator="-"):
                return self._over((node.left, Unary("-", node.right)), _sum)
            case _:
                return None

    def _over(
        self, nodes: Sequence[Node], join: Callable[[Interval, Interval], Interval]
    ) -> Interval | None:
        found = [self.interval(node) for node in nodes]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        known.sort(key=lambda one: not isinstance(one[0], float))  # numbers before arrays: sooner
        return reduce(join, known)

    def _looked_up(self, node: Lookup) -> Interval | None:
        """Of a table with an entry for each value of its key; a missing one is unknown."""
        if id(node) not in self._lookups:
            domain = self._domains.get(node.key.name, ()) if isinstance(node.key, Name) else ()
            whole = domain and set(domain) <= {key for key, _ in node.entries}
            values = tuple(value for _, value in node.entries)
            self._lookups[id(node)] = span(values) if whole else None
        return self._lookups[id(node)]


def span(values: Sequence[Value]) -> Interval | None:
    """The least and the greatest of the values; ``None`` if one is no finite number."""
    if not values or not all(isinstance(v, int | float) and math.isfinite(v) for v in values):
        return None
    return float(min(values)), float(max(values))


def _is_exact(one: Interval) -> bool:
    """False from where on whole numbers are rounded, which no margin makes up for."""
    if isinstance(one[0], float) and isinstance(one[1], float):
        return abs(one[0]) < _EXACT and abs(one[1]) < _EXACT
    return bool(np.all(np.abs(one[0]) < _EXACT) and np.all(np.abs(one[1]) < _EXACT))


def _sum(one: Interval, other: Interval) -> Interval:
    return one[0] + other[0], one[1] + other[1]


def _product(one: Interval, other: Interval) -> Interval:
    first, *others = (a * b for a in one for b in other)
    low = high = first
    for corner in others:
        low, high = np.minimum(low, corner), np.maximum(high, corner)
    return low, high


_JOIN: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "sum": _sum,
    "+": _sum,
    "product": _product,
    "*": _product,
}


def _surely_less(one: Interval, other: Interval) -> Mask:
    """Return where the first interval lies below the second by more than rounding."""
    high, low = one[1], other[0]
    return np.atleast_1d(high + _MARGIN * (np.abs(high) + np.abs(low) + 1e-300) < low)


def interval_of(
    columns: Mapping[str, Column], spans: Mapping[str, Interval | None], name: str
) -> Interval | None:
    """The values of a name that is set, else the span of its domain; ``None`` for no number."""
    column = columns.get(name)
    if column is None:
        return spans.get(name)
    if column.values.dtype.kind not in "biuf" or column.absent is not None:
        return None
    values = column.values.astype(np.float64)
    return values, values


def whole_bounds(parameters: Sequence[Finite]) -> dict[str, float]:
    """Return the largest size of the values of each parameter that has whole numbers alone."""
    bounds: dict[str, float] = {}
    for parameter in parameters:
        whole = [abs(value) for value in parameter.values if isinstance(value, int)]
        if len(whole) == len(parameter.values):
            bounds[parameter.name] = float(max(whole))
    return bounds
