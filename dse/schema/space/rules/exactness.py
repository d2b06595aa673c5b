"""Detection of rules whose result depends on integers that floats cannot represent exactly.

These are integers of 2**53 and above. With them, ``%``, ``//``, ``==``, ``!=``, ``in`` and
``is_pow2`` would silently give wrong results, so a rule is rejected if the parameters' domains
allow such an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from dse.core.expressions import syntax
from dse.core.expressions.error_position import shorten_text
from dse.core.expressions.expression import Expression
from dse.core.expressions.printer import format_node
from dse.core.parameter import Integer, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError
from dse.schema.space.rules.ranges import HUGE, Ranges

END = 2**53
"""Exclusive upper bound of the integers that a float represents exactly."""

_HINT = "give it in a larger unit, or as 1e17 where a rounded number will do"


def check_exact_values(values: Iterable[Value]) -> None:
    """Check that every integer among the values is exact, that is, below 2**53 in magnitude.

    Raises:
        SpecError: an integer is larger than that.
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
