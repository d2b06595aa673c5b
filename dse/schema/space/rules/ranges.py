"""Interval arithmetic: bounds on the values of integer formulas from their parameters' domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from dse.core.expressions import syntax
from dse.core.parameter import Integer, Parameter, Real
from dse.core.values import Value

HUGE = 1e300
"""Magnitude to which bounds are clipped."""

Range = tuple[float, float]
"""Lower and upper bound."""


class Ranges:
    """Interval arithmetic on integer formulas: lower and upper bounds from the domains."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = parameters
        self._domains: dict[str, Range | None] = {}

    def of(self, node: syntax.Node) -> Range | None:  # noqa: C901 - one case per kind of node
        """Return the lower and upper bound of the formula; ``None`` if it may not be an integer."""
        match node:
            case syntax.Number():
                return (node.value, node.value) if isinstance(node.value, int) else None
            case (
                syntax.Truth()
                | syntax.Logic()
                | syntax.Compare()
                | syntax.Absent()
                | syntax.Member()
            ):
                return 0, 1
            case syntax.Name():
                return self._domain(node.name)
            case syntax.Lookup():
                return _of(value for _, value in node.entries)
            case syntax.Unary(operator="-"):
                return _each(_negative, [self.of(node.operand)])
            case syntax.Unary():
                return 0, 1
            case syntax.Binary():
                return _each(_BINARY.get(node.operator), [*map(self.of, syntax.children(node))])
            case syntax.Call():
                return _each(_CALLS.get(node.function), [*map(self.of, syntax.children(node))])
            case _:
                return None

    def _domain(self, name: str) -> Range | None:
        if name not in self._domains:
            parameter = self._parameters[name]
            match parameter:
                case Real():
                    found = None
                case Integer():
                    found = _of((parameter.low, parameter.high))
                case _:
                    found = _of(parameter.values)
            self._domains[name] = found
        return self._domains[name]


def _of(values: Iterable[Value]) -> Range | None:
    known = tuple(values)
    whole = [value for value in known if isinstance(value, int)]
    return (min(whole), max(whole)) if whole and len(whole) == len(known) else None


def _each(fold: Callable[..., Range | None] | None, parts: Sequence[Range | None]) -> Range | None:
    """Combine intervals from left to right by a function of two intervals.

    The result is ``None`` if one of them is ``None`` (not an integer).
    """
    known = [part for part in parts if part is not None]
    if fold is None or len(known) < len(parts):
        return None
    if len(known) == 1:
        return fold(known[0]) if fold in (_negative, _size) else known[0]
    found: Range | None = known[0]
    for part in known[1:]:
        found = None if found is None else fold(found, part)
    return found


def _clip_range(*values: float) -> Range:
    return max(min(values), -HUGE), min(max(values), HUGE)


def _negative(one: Range) -> Range:
    return -one[1], -one[0]


def _size(one: Range) -> Range:
    return 0, max(abs(one[0]), abs(one[1]))


def _plus(one: Range, other: Range) -> Range:
    return _clip_range(float(one[0]) + other[0], float(one[1]) + other[1])


def _minus(one: Range, other: Range) -> Range:
    return _plus(one, _negative(other))


def _times(one: Range, other: Range) -> Range:
    return _clip_range(*(float(a) * b for a in one for b in other))


def _quotient(one: Range, _other: Range) -> Range:
    return _both_ways(_size(one)[1])


def _rest(_one: Range, other: Range) -> Range:
    return _both_ways(_size(other)[1])


def _power(one: Range, other: Range) -> Range | None:
    """Return the interval of a power; ``None`` if a negative exponent may make it a fraction."""
    if other[0] < 0:
        return None
    base = max(_size(one)[1], 1.0)
    digits = other[1] * math.log10(base)
    most = HUGE if digits >= math.log10(HUGE) else float(base) ** other[1]
    return (0, most) if one[0] >= 0 else _both_ways(most)


def _both_ways(size: float) -> Range:
    return -size, size


def _least(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), min(one[1], other[1])


def _greatest(one: Range, other: Range) -> Range:
    return max(one[0], other[0]), max(one[1], other[1])


_BINARY: Mapping[str, Callable[..., Range | None]] = {
    "+": _plus,
    "-": _minus,
    "*": _times,
    "//": _quotient,
    "%": _rest,
    "**": _power,
}
_CALLS: Mapping[str, Callable[..., Range | None]] = {
    "sum": _plus,
    "product": _times,
    "min": _least,
    "max": _greatest,
    "abs": _size,
}
