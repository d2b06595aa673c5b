"""Integers that a rule cannot distinguish: from 2**53 on they are computed as rounded numbers.

``%``, ``//``, ``==`` and ``is_pow2`` would go wrong there without a word; so a rule is refused
where one of them can meet so large a whole number, by what the parameters' domains allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from dse.core.expressions.error_position import shorten_text
from dse.core.expressions.expression import (
    Binary,
    Call,
    Compare,
    Expression,
    Member,
    Node,
    Number,
    Unary,
    children,
)
from dse.core.expressions.printer import format_node
from dse.core.parameter import Integer, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError
from dse.schema.space.rules.ranges import HUGE, Ranges

END = 2**53
"""All whole numbers below are exact."""

_HINT = "give it in a larger unit, or as 1e17 where a rounded number will do"


def check_exact_values(values: Iterable[Value]) -> None:
    """Nothing, if every whole number among the values is exact.

    Raises:
        SpecError: one is not.
    """
    for value in values:
        if isinstance(value, int) and abs(value) >= END:
            raise SpecError(
                f"{str(value)[:20]} is too large: whole numbers are exact up to 2**53", hint=_HINT
            )


def check_exact_domain(parameter: Parameter) -> None:
    """Nothing, if every value of the parameter is exact. Raises SpecError if not."""
    if isinstance(parameter, Integer):
        check_exact_values((parameter.low, parameter.high))
    elif not isinstance(parameter, Real):
        check_exact_values(parameter.values)


class Exactness:
    """Checks rules over single parameters, in coherent units."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._ranges = Ranges(parameters)

    def check(self, rule: Expression) -> None:
        """Check that the rule does not distinguish integers that are rounded.

        Raises:
            SpecError: it does, for some values of the parameters.
        """
        self._check(rule.node, rule.text)

    def _check(self, node: Node, text: str) -> None:
        match node:
            case Number():
                check_exact_values((node.value,))
            case Binary(operator="%" | "//"):
                self._refuse([node.left], text)
            case Call(function="is_pow2"):
                self._refuse(node.arguments, text)
            case _:
                for sides in _find_equalities(node):
                    self._check_equal(sides, text)
        for child in children(node):
            self._check(child, text)

    def _check_equal(self, sides: Sequence[Node], text: str) -> None:
        for side in sides:
            if self._cancels(side):
                self._refuse([_largest(side, self._reach)], text)
        if all(self._reach(side) >= END for side in sides):
            self._refuse(sides, text)

    def _refuse(self, nodes: Sequence[Node], text: str) -> None:
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

    def _reach(self, node: Node) -> float:
        found = self._ranges.of(node)
        return 0.0 if found is None else max(abs(found[0]), abs(found[1]))

    def _cancels(self, node: Node) -> bool:
        """True for a sum of rounded numbers that can be small."""
        parts = _summands(node)
        ranges = [self._ranges.of(part) for part in parts]
        known = [one for one in ranges if one is not None]
        if len(parts) < 2 or len(known) < len(parts):
            return False
        return max(high for _, high in known) >= END and min(low for low, _ in known) <= -END


def _find_equalities(node: Node) -> list[tuple[Node, Node]]:
    """Return the pairs of formulas that the node tests for equality."""
    match node:
        case Compare():
            links = zip(node.operators, pairwise(node.operands), strict=True)
            return [pair for operator, pair in links if operator in ("==", "!=")]
        case Member():
            return [(node.item, value) for value in node.values]
        case _:
            return []


def _summands(node: Node) -> list[Node]:
    """Return the terms of a sum, those that are subtracted as negatives."""
    match node:
        case Binary(operator="+"):
            return [*_summands(node.left), *_summands(node.right)]
        case Binary(operator="-"):
            return [*_summands(node.left), *(Unary("-", one) for one in _summands(node.right))]
        case Call(function="sum"):
            return [part for one in node.arguments for part in _summands(one)]
        case _:
            return [node]


def _largest(node: Node, reach: Callable[[Node], float]) -> Node:
    return max(_summands(node), key=reach)
