"""Dimensional analysis of formulas: derive a formula's unit, and reject incompatible units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import assert_never

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.errors import SpecError
from dse.units.units import same_dimension, short, unit

TEXT = "text"
"""Pseudo-unit of a parameter whose values are texts."""


def unit_of(expression: Expression, units: Mapping[str, str]) -> str:
    """Return the unit of the formula's value, given each name's unit; empty if it has no unit.

    Raises:
        SpecError: units are incompatible: a length is added to a time, or compared with a text.
    """
    return _unit(expression.node, units, expression.text)


def check_shares(rule: Expression, units: Mapping[str, str]) -> None:
    """Raise SpecError if a quantity in percent is compared with a plain number above one.

    A user who writes ``accuracy >= 90`` means 90 percent, but a bare 90 is 9,000 percent.

    Raises:
        SpecError: the rule contains such a comparison.
    """
    operands = rule.node.operands if isinstance(rule.node, syntax.Compare) else ()
    shares = [one for one in operands if isinstance(one, syntax.Name) and _is_share(one, units)]
    bare = [one.value for one in operands if isinstance(one, syntax.Number) and not one.unit]
    if shares and bare and abs(bare[0]) > 1:
        value = bare[0]
        raise SpecError(
            f"the bare number {value:g} is {100 * value:g} % here: {rule.text!r}",
            hint=f"write {value:g} percent, or {100 * value:g} percent if you mean that",
        )


def _is_share(name: syntax.Name, units: Mapping[str, str]) -> bool:
    unit_of_name = units.get(name.name, "")
    return unit_of_name not in ("", TEXT) and unit(unit_of_name) == unit("percent")


def in_coherent(expression: Expression, factors: Mapping[str, float]) -> Expression:
    """Return the formula with each name multiplied by its conversion factor to coherent units.

    Args:
        expression: a formula whose names hold numbers in their own units.
        factors: for each name, the size of its unit in coherent units; 1 if missing.
    """

    def scaled(node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Name) and factors.get(node.name, 1.0) != 1.0:
            return syntax.Binary("*", node, syntax.Number(factors[node.name]))
        return node

    return Expression(expression.text, syntax.map_nodes(expression.node, scaled))


def _unit(  # noqa: C901, PLR0912 - one case per kind of node
    node: syntax.Node, units: Mapping[str, str], text: str
) -> str:
    match node:
        case syntax.Number():
            unit(node.unit)
            return node.unit
        case syntax.Text():
            return TEXT
        case syntax.Truth() | syntax.Absent() | syntax.Listed():
            return ""
        case syntax.Name():
            return units.get(node.name, "")
        case syntax.Unary():
            return _number(node.operand, units, text)
        case syntax.Binary():
            return _arithmetic(node, units, text)
        case syntax.Compare():
            _comparison(node, units, text)
            return ""
        case syntax.Logic():
            for operand in node.operands:
                _number(operand, units, text)
            return ""
        case syntax.Member():
            _agree(syntax.children(node), _units(node, units, text), text)
            return ""
        case syntax.Call():
            return _function(node, units, text)
        case syntax.Lookup():
            return _lookup(node, units, text)
        case syntax.Index() | syntax.Field():
            raise AssertionError("a formula with lists must be expanded before its unit is derived")
        case _:
            assert_never(node)


def _comparison(node: syntax.Compare, units: Mapping[str, str], text: str) -> None:
    agreed = _agree(node.operands, _units(node, units, text), text)
    if agreed == TEXT and not set(node.operators) <= {"==", "!="}:
        raise SpecError(f"words have no order: {text!r}", hint="compare them with == or !=")


def _lookup(node: syntax.Lookup, units: Mapping[str, str], text: str) -> str:
    by_word = _unit(node.key, units, text) == TEXT
    words = any(isinstance(key, str) for key, _ in node.entries)
    if node.entries and by_word != words:
        kinds = ("a word", "numbers") if by_word else ("a number", "words")
        raise SpecError(
            f"{node.text} is looked up by {kinds[0]}, its keys are {kinds[1]}: {text!r}"
        )
    return TEXT if any(isinstance(value, str) for _, value in node.entries) else node.unit


def _arithmetic(node: syntax.Binary, units: Mapping[str, str], text: str) -> str:
    left, right = _number(node.left, units, text), _number(node.right, units, text)
    if node.operator in ("+", "-", "%"):
        return _agree((node.left, node.right), (left, right), text)
    if node.operator == "*":
        return _times(left, right)
    if node.operator in ("/", "//"):
        return short(unit(left) / unit(right))
    return _power(node, left, right, text)


@cache
def _times(left: str, right: str) -> str:
    return short(unit(left) * unit(right))


def _power(node: syntax.Binary, left: str, right: str, text: str) -> str:
    if not same_dimension(right, ""):
        raise SpecError(f"an exponent has no unit, but this one is in {right}: {text!r}")
    if same_dimension(left, ""):
        return ""
    if not isinstance(node.right, syntax.Number):
        raise SpecError(f"a quantity in {left} needs a plain number as exponent: {text!r}")
    return short(unit(left) ** node.right.value)


def _function(node: syntax.Call, units: Mapping[str, str], text: str) -> str:
    if node.function == "all_different":
        _agree(node.arguments, _units(node, units, text), text)
        return ""
    found = [_number(argument, units, text) for argument in node.arguments]
    if node.function in ("min", "max", "sum"):
        return _agree(node.arguments, found, text)
    if node.function == "product":
        return reduce(_times, found)
    argument = found[0]
    if node.function == "abs":
        return argument
    if node.function == "sqrt":
        return short(unit(argument) ** 0.5)
    if not same_dimension(argument, ""):
        raise SpecError(
            f"{node.function} takes a bare number, not one in {argument}: {text!r}",
            hint=f"divide by a quantity first, such as 1 {argument}",
        )
    return ""


def _number(node: syntax.Node, units: Mapping[str, str], text: str) -> str:
    found = _unit(node, units, text)
    if found == TEXT:
        raise SpecError(f"a word stands where a number or a truth is needed: {text!r}")
    return found


def _units(node: syntax.Node, units: Mapping[str, str], text: str) -> list[str]:
    """Return the units of the operands of an expression, in order."""
    return [_unit(child, units, text) for child in syntax.children(node)]


def _agree(nodes: Sequence[syntax.Node], found: Sequence[str], text: str) -> str:
    """Return the first operand's unit; raise SpecError if the operands' dimensions differ.

    A bare 0 fits any dimension.
    """
    fixed = [u for u, node in zip(found, nodes, strict=True) if not _is_zero(node)] or [""]
    for other in fixed[1:]:
        if (other == TEXT) != (fixed[0] == TEXT):
            raise SpecError(f"a word is compared with a number: {text!r}")
        if other != TEXT and not same_dimension(fixed[0], other):
            raise SpecError(
                f"{_describe_unit(fixed[0])} does not go with {_describe_unit(other)}: {text!r}",
                hint=_mend(nodes, fixed[0], other),
            )
    return fixed[0]


def _mend(nodes: Sequence[syntax.Node], first: str, other: str) -> str:
    """Return a hint on a unit error: the unit that a number lacks, or that both operands need."""
    pairs = [
        (node, unit) for node in nodes if isinstance(node, syntax.Number) for unit in (first, other)
    ]
    for node, wanted in pairs:
        if wanted and not same_dimension(node.unit, wanted) and wanted != TEXT:
            kind = f", not {node.unit}" if node.unit else ""
            return f"give it a unit such as {wanted}{kind}: '{node.value:g} {wanted}'"
    return f"give both the unit {first or other}"


def _is_zero(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Number) and node.value == 0 and not node.unit


def _describe_unit(text: str) -> str:
    return f"a quantity in {text}" if text else "a bare number"
