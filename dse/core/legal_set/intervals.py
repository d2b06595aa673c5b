"""Interval arithmetic: bounds of a formula when only some of its parameters are set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.syntax import Binary, Call, Compare, Lookup, Name, Node, Number, Unary
from dse.core.parameter import Finite
from dse.core.values import Floats, Mask, Value

Interval = tuple[Floats | float, Floats | float]
"""Least and greatest value: arrays with one entry per state, or one number for all states."""

_EXACT = 2.0**53
"""Magnitude from which floats no longer represent every integer."""

_MARGIN = 1e-9
"""Relative tolerance: the rule itself may round in another order, so a near miss is undecided."""


@dataclass(frozen=True, slots=True)
class RuleMasks:
    """Masks of the partial designs in which a rule is certainly violated or certainly holds."""

    broken: Mask
    kept: Mask


class Intervals:
    """Interval evaluator for formulas in which only some parameters have values.

    Args:
        of: returns the interval of a name; ``None`` if it is not numeric or can be absent.
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

    def fate(self, node: Node, size: int) -> RuleMasks | None:
        """Return the states in which a comparison is already true or false, by interval bounds.

        The result is ``None`` if there are no such states.

        Args:
            node: the comparison, partially evaluated.
            size: number of states.
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
        return RuleMasks(np.broadcast_to(broken, (size,)), np.broadcast_to(kept, (size,)))

    def interval(self, node: Node) -> Interval | None:
        """Return bounds of an expression in each partial design; ``None`` if unknown."""
        if isinstance(node, Name):  # not cacheable: the node is the same before and after it is set
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
                return self._join(node)

    def _join(self, node: Node) -> Interval | None:
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
        known.sort(key=lambda one: not isinstance(one[0], float))  # scalars before arrays: faster
        return reduce(join, known)

    def _looked_up(self, node: Lookup) -> Interval | None:
        """Return the smallest and largest entry of a table; ``None`` if a key has no entry."""
        if id(node) not in self._lookups:
            domain = self._domains.get(node.key.name, ()) if isinstance(node.key, Name) else ()
            whole = domain and set(domain) <= {key for key, _ in node.entries}
            values = tuple(value for _, value in node.entries)
            self._lookups[id(node)] = span(values) if whole else None
        return self._lookups[id(node)]


def span(values: Sequence[Value]) -> Interval | None:
    """Return the smallest and largest of the values; ``None`` unless all are finite numbers."""
    if not values or not all(isinstance(v, int | float) and math.isfinite(v) for v in values):
        return None
    return float(min(values)), float(max(values))


def _is_exact(one: Interval) -> bool:
    """Return whether floats represent all integers up to both bounds exactly: below 2**53."""
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
    """Return the mask where one interval is below the other by more than rounding errors."""
    high, low = one[1], other[0]
    return np.atleast_1d(high + _MARGIN * (np.abs(high) + np.abs(low) + 1e-300) < low)


def interval_of(
    columns: Mapping[str, Column], spans: Mapping[str, Interval | None], name: str
) -> Interval | None:
    """Return the interval of a parameter's values: of the values set, or else of its domain.

    The interval is ``None`` if the parameter is not numeric.

    Args:
        columns: the values of the names that are set.
        spans: the smallest and largest value of each domain.
        name: the name.
    """
    column = columns.get(name)
    if column is None:
        return spans.get(name)
    if column.values.dtype.kind not in "biuf" or column.absent is not None:
        return None
    values = column.values.astype(np.float64)
    return values, values


def whole_bounds(parameters: Sequence[Finite]) -> dict[str, float]:
    """Return the largest magnitude of each all-integer parameter's values, by name."""
    bounds: dict[str, float] = {}
    for parameter in parameters:
        whole = [abs(value) for value in parameter.values if isinstance(value, int)]
        if len(whole) == len(parameter.values):
            bounds[parameter.name] = float(max(whole))
    return bounds
