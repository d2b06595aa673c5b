"""Interval bounds of a formula, and its monotonicity in each of its subexpressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Flag
from functools import reduce
from itertools import product

import numpy as np

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression


class Trend(Flag):
    """Direction in which a formula changes as a subexpression grows; EITHER if mixed or unknown."""

    NONE = 0
    RISES = 1
    FALLS = 2
    EITHER = 3

    @property
    def turned(self) -> Trend:
        """Direction of the negated formula: rising and falling swapped."""
        return {Trend.RISES: Trend.FALLS, Trend.FALLS: Trend.RISES}.get(self, self)


Trends = Mapping[syntax.Node, Trend]


@dataclass(frozen=True, slots=True)
class MonotoneRange:
    """Bounds of a formula, and its direction (:class:`Trend`) in each given subexpression.

    The bounds are computed with the formula's own floating-point operations, whose rounding is
    monotone, so no value lies outside.
    """

    low: float
    high: float
    trends: Trends = field(default_factory=dict)

    @property
    def definite(self) -> MonotoneRange:
        """Range of the formula if its bounds are finite, else an unbounded one without trends."""
        return self if math.isfinite(self.low) and math.isfinite(self.high) else _lost([self])


def monotone_range(
    node: syntax.Node, terms: Mapping[syntax.Node, tuple[float, float]]
) -> MonotoneRange:
    """Return bounds and trends of a formula, given the ranges of its subexpressions.

    Every name in the formula must be in one of these subexpressions (terms). If the formula rises
    or falls with a term, it has a value only where the term has one. Powers and logarithms of
    values that depend on several terms are assumed to be monotone, although the rounding of their
    last digit may not be.
    """
    if node in terms:
        return MonotoneRange(*terms[node], {node: Trend.RISES}).definite
    match node:
        case syntax.Number() | syntax.Truth():
            return MonotoneRange(float(node.value), float(node.value))
        case syntax.Unary(operator="-"):
            return _negate_range(monotone_range(node.operand, terms))
        case syntax.Binary():
            inner = [monotone_range(child, terms) for child in syntax.children(node)]
            found = _BINARY.get(node.operator, _lost_of)(*inner)
        case syntax.Call():
            inner = [monotone_range(child, terms) for child in syntax.children(node)]
            found = _CALLS.get(node.function, _lost)(inner)
        case _:
            found = _lost([monotone_range(child, terms) for child in syntax.children(node)])
    return found.definite


def pair_folds(expression: Expression) -> syntax.Node:
    """Rewrite n-ary sums, products, min and max as nested binary steps, in evaluation order."""
    return syntax.map_nodes(expression.node, _pair_call)


def _pair_call(node: syntax.Node) -> syntax.Node:
    if not isinstance(node, syntax.Call) or len(node.arguments) < 2:
        return node
    first, *others = node.arguments
    match node.function:
        case "sum":
            return reduce(lambda left, right: syntax.Binary("+", left, right), others, first)
        case "product":
            return reduce(lambda left, right: syntax.Binary("*", left, right), others, first)
        case "min" | "max":
            return reduce(
                lambda left, right: syntax.Call(node.function, (left, right)), others, first
            )
        case _:
            return node


def single_group_terms(node: syntax.Node, group_of: Mapping[str, int]) -> list[syntax.Node]:
    """Return the largest subexpressions that read names of one parameter group only."""
    groups = {group_of[name.name] for name in syntax.names_in(node)}
    if len(groups) < 2:
        return [node] if groups else []
    return [term for child in syntax.children(node) for term in single_group_terms(child, group_of)]


def merge_trends(*every: Trends) -> Trends:
    """Return the trend that several formulas share in each subexpression.

    The trend is EITHER where the formulas' trends differ.
    """
    found: dict[syntax.Node, Trend] = {}
    for trends in every:
        for term, trend in trends.items():
            found[term] = found.get(term, Trend.NONE) | trend
    return found


def negate_trends(trends: Trends) -> Trends:
    """Return the trends of the negative of a formula, given those of the formula."""
    return {term: trend.turned for term, trend in trends.items()}


def _lost(inner: list[MonotoneRange]) -> MonotoneRange:
    """Return an unbounded range with unknown trend in all subexpressions of the operands."""
    every = merge_trends(*(one.trends for one in inner))
    return MonotoneRange(-math.inf, math.inf, dict.fromkeys(every, Trend.EITHER))


def _lost_of(left: MonotoneRange, right: MonotoneRange) -> MonotoneRange:
    return _lost([left, right])


def _negate_range(one: MonotoneRange) -> MonotoneRange:
    return MonotoneRange(-one.high, -one.low, negate_trends(one.trends))


def _times(trends: Trends, factor: MonotoneRange) -> Trends:
    """Return the trends of a product in the terms of one factor, given the other's sign."""
    if factor.low >= 0:
        return trends
    return negate_trends(trends) if factor.high <= 0 else dict.fromkeys(trends, Trend.EITHER)


def _sum(left: MonotoneRange, right: MonotoneRange) -> MonotoneRange:
    return MonotoneRange(
        left.low + right.low, left.high + right.high, merge_trends(left.trends, right.trends)
    )


def _difference(left: MonotoneRange, right: MonotoneRange) -> MonotoneRange:
    return _sum(left, _negate_range(right))


def _product(left: MonotoneRange, right: MonotoneRange) -> MonotoneRange:
    trends = merge_trends(_times(left.trends, right), _times(right.trends, left))
    return _bound_by_corners(np.multiply, left, right, trends)


def _quotient(left: MonotoneRange, right: MonotoneRange) -> MonotoneRange:
    if right.low <= 0 <= right.high:
        return _lost([left, right])
    falls = negate_trends(_times(right.trends, left))
    return _bound_by_corners(
        np.true_divide, left, right, merge_trends(_times(left.trends, right), falls)
    )


def _power(left: MonotoneRange, right: MonotoneRange) -> MonotoneRange:
    exponent = right.low
    if right.trends or exponent != right.high:
        return _lost([left, right])
    if left.low < 0 or exponent == 0 or (left.low == 0 and exponent < 0):
        return _lost([left])
    trends = left.trends if exponent > 0 else negate_trends(left.trends)
    return _bound_by_corners(np.power, left, right, trends)


def _bound_by_corners(
    operation: Callable[[float, float], float],
    left: MonotoneRange,
    right: MonotoneRange,
    trends: Trends,
) -> MonotoneRange:
    """Bound an operation by its values at the four corners of its operands' ranges.

    If a value at a corner is not finite, the result is unbounded and its trends are unknown.
    """
    with np.errstate(all="ignore"):
        corners = product((left.low, left.high), (right.low, right.high))
        values = [float(operation(a, b)) for a, b in corners]
    if not all(map(math.isfinite, values)):
        return _lost([MonotoneRange(-math.inf, math.inf, trends)])
    return MonotoneRange(min(values), max(values), trends)


def _extreme(
    choose: Callable[[float, float], float],
) -> Callable[[list[MonotoneRange]], MonotoneRange]:
    return lambda inner: reduce(
        lambda a, b: MonotoneRange(
            choose(a.low, b.low), choose(a.high, b.high), merge_trends(a.trends, b.trends)
        ),
        inner,
    )


def _rising(
    operation: Callable[[float], float], least: float
) -> Callable[[list[MonotoneRange]], MonotoneRange]:
    """Return the bounding rule for a unary function that increases above ``least``."""

    def found(inner: list[MonotoneRange]) -> MonotoneRange:
        (one,) = inner
        if one.low < least:
            return _lost(inner)
        with np.errstate(all="ignore"):
            return MonotoneRange(float(operation(one.low)), float(operation(one.high)), one.trends)

    return found


def _size(inner: list[MonotoneRange]) -> MonotoneRange:
    (one,) = inner
    if one.low >= 0:
        return one
    return _negate_range(one) if one.high <= 0 else _lost(inner)


_BINARY: Mapping[str, Callable[[MonotoneRange, MonotoneRange], MonotoneRange]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "**": _power,
}

_CALLS: Mapping[str, Callable[[list[MonotoneRange]], MonotoneRange]] = {
    "min": _extreme(min),
    "max": _extreme(max),
    "sum": lambda inner: reduce(_sum, inner),
    "product": lambda inner: reduce(_product, inner),
    "abs": _size,
    "sqrt": _rising(np.sqrt, 0.0),
    "log2": _rising(np.log2, math.ulp(0.0)),
    "ceil": _rising(np.ceil, -math.inf),
    "floor": _rising(np.floor, -math.inf),
    "round": _rising(np.round, -math.inf),
}
"""Rules by function; all others (text, comparisons, remainders, tables) have mixed trends."""
