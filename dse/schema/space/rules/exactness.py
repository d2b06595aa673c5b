"""Detection of rules whose result depends on integers that floats cannot represent exactly.

Integers above 2**53 are not all representable. With them, ``%``, ``//``, ``==``, ``!=``, ``in`` and
``is_pow2`` would silently give wrong results, so a rule is rejected if the parameters' domains
allow an operand of 2**53 or more. Interval arithmetic bounds the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from dse.core.expressions import syntax
from dse.core.expressions.error_position import shorten_text
from dse.core.expressions.expression import Expression
from dse.core.expressions.printer import format_node
from dse.core.parameter import Integer, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError

END = 2**53
"""Exclusive upper bound of the integers that a float represents exactly."""

_HINT = "give it in a larger unit, or as 1e17 where a rounded number will do"


def check_exact_values(values: Iterable[Value]) -> None:
    """Check that every integer among the values is exact, that is, below 2**53 in magnitude.

    Raises:
        SpecError: the magnitude of an integer is 2**53 or more.
    """
    for value in values:
        if isinstance(value, int) and abs(value) >= END:
            raise SpecError(
                f"{str(value)[:20]} is too large: whole numbers are exact up to 2**53", hint=_HINT
            )


def check_exact_domain(parameter: Parameter) -> None:
    """Raise SpecError unless every integer in the parameter's domain is exact."""
    if isinstance(parameter, Integer):
        check_exact_values((parameter.low, parameter.high))
    elif not isinstance(parameter, Real):
        check_exact_values(parameter.values)


class Exactness:
    """Checker of whether rules can depend on integers that floats would round.

    Rules must be expanded to scalar parameters and have literals in coherent units.
    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._ranges = Ranges(parameters)

    def check(self, rule: Expression) -> None:
        """Check that the rule does not depend on integers that are rounded.

        Raises:
            SpecError: the rule depends on rounded integers for some parameter values.
        """
        self._check(rule.node, rule.text)

    def _check(self, node: syntax.Node, text: str) -> None:
        match node:
            case syntax.Number():
                check_exact_values((node.value,))
            case syntax.Binary(operator="%" | "//"):
                self._refuse([node.left], text)
            case syntax.Call(function="is_pow2"):
                self._refuse(node.arguments, text)
            case _:
                for sides in _find_equalities(node):
                    self._check_equal(sides, text)
        for child in syntax.children(node):
            self._check(child, text)

    def _check_equal(self, sides: Sequence[syntax.Node], text: str) -> None:
        for side in sides:
            if self._cancels(side):
                self._refuse([_largest(side, self._reach)], text)
        if all(self._reach(side) >= END for side in sides):
            self._refuse(sides, text)

    def _refuse(self, nodes: Sequence[syntax.Node], text: str) -> None:
        node = max(nodes, key=self._reach)
        reach = self._reach(node)
        if reach < END:
            return
        size = f"{reach:.0e}".replace("e+", "e") if reach < HUGE else "beyond 1e300"
        large = f"can be as large as {size}" if reach < HUGE else f"can be {size}"
        raise SpecError(
            f"{shorten_text(format_node(node))!r} {large}, "
            f"where whole numbers are no longer exact: {shorten_text(text)!r}",
            hint="they are up to 2**53; take larger units, smaller domains, or compare with <=",
        )

    def _reach(self, node: syntax.Node) -> float:
        found = self._ranges.of(node)
        return 0.0 if found is None else max(abs(found[0]), abs(found[1]))

    def _cancels(self, node: syntax.Node) -> bool:
        """Return whether the node is a sum with both large positive and large negative terms.

        Their difference may be small and so look exact, although the terms (2**53 and above) are
        rounded.
        """
        parts = _summands(node)
        ranges = [self._ranges.of(part) for part in parts]
        known = [one for one in ranges if one is not None]
        if len(parts) < 2 or len(known) < len(parts):
            return False
        return max(high for _, high in known) >= END and min(low for low, _ in known) <= -END


def _find_equalities(node: syntax.Node) -> list[tuple[syntax.Node, syntax.Node]]:
    """Return the pairs of formulas that the node tests for equality or inequality."""
    match node:
        case syntax.Compare():
            links = zip(node.operators, pairwise(node.operands), strict=True)
            return [pair for operator, pair in links if operator in ("==", "!=")]
        case syntax.Member():
            return [(node.item, value) for value in node.values]
        case _:
            return []


def _summands(node: syntax.Node) -> list[syntax.Node]:
    """Return the terms of a sum; subtracted terms are negated."""
    match node:
        case syntax.Binary(operator="+"):
            return [*_summands(node.left), *_summands(node.right)]
        case syntax.Binary(operator="-"):
            return [
                *_summands(node.left),
                *(syntax.Unary("-", one) for one in _summands(node.right)),
            ]
        case syntax.Call(function="sum"):
            return [part for one in node.arguments for part in _summands(one)]
        case _:
            return [node]


def _largest(node: syntax.Node, reach: Callable[[syntax.Node], float]) -> syntax.Node:
    return max(_summands(node), key=reach)


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
