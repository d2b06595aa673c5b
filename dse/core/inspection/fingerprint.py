"""Canonical form and hash of a space: its domains, conditions and rules.

Two spaces are equal if their canonical forms are.

The form ignores the layout of the files; the order of parameters, of rules, of a choice's values
and of the operands of ``and`` and ``or``; redundant parentheses; the spelling of a unit; ``a < b``
versus ``b > a``, ``a in [1]`` versus ``a == 1``; and comparisons of a choice with a text that is
not among its values. It includes the scale of a range, which does not change the legal designs but
does change the designs that an optimizer suggests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, assert_never

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.items import literal
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.space import DesignSpace
from dse.core.values import Value

Outline = Mapping[str, Any]
"""Space as plain JSON: ``parameters`` by name, ``conditions`` by name, ``rules`` by hash."""

_MIRRORED = {">": "<", ">=": "<="}


def fingerprint(space: DesignSpace | Outline) -> str:
    """Return 16 hex digits that identify the space, the same in every process and machine."""
    parts = outline(space)
    return _hash(
        [
            parts["parameters"],
            {name: rule["hash"] for name, rule in parts["conditions"].items()},
            sorted(parts["rules"]),
        ]
    )


def outline(space: DesignSpace | Outline) -> Outline:
    """Return a space's canonical form as plain JSON, with the text and the hash of each rule.

    A study's record stores it for comparison with a later space. An outline is returned unchanged.
    """
    if not isinstance(space, DesignSpace):
        return space

    def key(rule: Expression) -> str:
        return _hash(
            form(syntax.map_nodes(rule.node, lambda node: without_strangers(node, space.by_name)))
        )

    return {
        "parameters": {p.name: domain(p) for p in space.parameters},
        "conditions": {
            name: {"hash": key(rule), "text": _words(rule)}
            for name, rule in space.conditions.items()
        },
        "rules": {key(rule): _words(rule) for rule in space.constraints},
    }


def domain(parameter: Parameter) -> dict[str, Any]:
    """Return the type, unit and values of a parameter as plain JSON."""
    kind = {"kind": type(parameter).__name__.lower(), "unit": parameter.unit}
    match parameter:
        case Real():
            ends = {"low": _plain(parameter.low), "high": _plain(parameter.high)}
            return {**kind, **ends, "scale": parameter.scale}
        case Integer():
            count = (parameter.high - parameter.low) // parameter.step
            step = parameter.step if count else 1
            ends = {"low": parameter.low, "high": parameter.low + count * step}
            return {**kind, **ends, "step": step, "scale": parameter.scale}
        case Ordinal():
            values = [_plain(value) for value in parameter.values]
            return {**kind, "values": values, "scale": parameter.scale}
        case Choice():
            return {**kind, "values": sorted(map(_plain, parameter.values), key=_json)}
        case _:
            assert_never(parameter)


def without_strangers(node: syntax.Node, parameters: Mapping[str, Parameter]) -> syntax.Node:
    """Remove strings that are not values of a choice from a test such as ``choice in ['a', 'b']``.

    Formulas contain such strings after values of the choice were removed. If no string remains, the
    result of the test depends only on whether the choice is active. A node that does not test a
    choice is returned unchanged.
    """
    if not isinstance(node, syntax.Member) and not _is_equality(node):
        return node
    item, *values = syntax.children(node)
    if isinstance(item, syntax.Text):
        item, values = values[0], [item]
    choice = parameters.get(item.name) if isinstance(item, syntax.Name) else None
    if not isinstance(choice, Choice) or not all(
        isinstance(value, syntax.Text) for value in values
    ):
        return node
    known = [v for v in values if isinstance(v, syntax.Text) and v.value in choice.values]
    if len(known) == len(values):
        return node
    negated = node.negated if isinstance(node, syntax.Member) else node.operators == ("!=",)
    if known:
        return syntax.Member(item, tuple(known), negated)
    return syntax.Member(item, tuple(literal(value) for value in choice.values), not negated)


def _is_equality(node: syntax.Node) -> TypeGuard[syntax.Compare]:
    return isinstance(node, syntax.Compare) and node.operators in (("==",), ("!=",))


def form(  # noqa: C901, PLR0912 - one case per kind of node
    node: syntax.Node,
) -> Any:
    """Return the canonical form of a formula as plain JSON."""
    match node:
        case syntax.Number() | syntax.Text() | syntax.Truth() | syntax.Name():
            return _leaf(node)
        case syntax.Unary():
            operand = form(node.operand)
            if (
                node.operator == "-"
                and isinstance(node.operand, syntax.Number)
                and not node.operand.unit
            ):
                return -operand
            return [node.operator, operand]
        case syntax.Binary():
            return [node.operator, form(node.left), form(node.right)]
        case syntax.Compare():
            return _comparison(node)
        case syntax.Logic():
            return _logic(node)
        case syntax.Member(values=(only,)):
            return _comparison(syntax.Compare(("!=" if node.negated else "==",), (node.item, only)))
        case syntax.Member():
            word = "not in" if node.negated else "in"
            return [word, form(node.item), _sort_forms(form(value) for value in node.values)]
        case syntax.Absent():
            return ["is not absent" if node.negated else "is absent", form(node.name)]
        case syntax.Call():
            return [node.function, *(form(argument) for argument in node.arguments)]
        case syntax.Index():
            return ["index", form(node.item), form(node.key)]
        case syntax.Field():
            return ["field", form(node.item), node.field]
        case syntax.Lookup():
            entries = _sort_forms([_plain(key), _plain(value)] for key, value in node.entries)
            return ["lookup", form(node.key), entries, node.unit]
        case syntax.Listed():
            return _table(node)
        case _:
            assert_never(node)


def _leaf(node: syntax.Number | syntax.Text | syntax.Truth | syntax.Name) -> Any:
    match node:
        case syntax.Number():
            return [_plain(node.value), node.unit] if node.unit else _plain(node.value)
        case syntax.Text():
            return ["text", node.value]
        case syntax.Truth():
            return node.value
        case syntax.Name():
            return ["name", node.name]


def _table(node: syntax.Listed) -> Any:
    names = [name.name for name in node.names]
    order = sorted(range(len(names)), key=names.__getitem__)
    rows = {_json([_plain(row[place]) for place in order]) for row in node.rows}
    return ["no row" if node.negated else "row", sorted(names), sorted(rows)]


def _comparison(node: syntax.Compare) -> Any:
    operators, operands = list(node.operators), [form(operand) for operand in node.operands]
    if all(operator in _MIRRORED for operator in operators):
        operators = [_MIRRORED[operator] for operator in reversed(operators)]
        operands.reverse()
    if operators in (["=="], ["!="]):
        operands = _sort_forms(operands)
    return ["compare", operators, operands]


def _logic(node: syntax.Logic) -> Any:
    if node.operator == "->":
        return ["->", *(form(operand) for operand in node.operands)]
    flat: list[Any] = []
    for operand in node.operands:
        inner = form(operand)
        same = isinstance(inner, list) and inner and inner[0] == node.operator
        flat += inner[1:] if same else [inner]
    return [node.operator, *_sort_forms(flat)]


def _sort_forms(forms: Any) -> list[Any]:
    return sorted(forms, key=_json)


def _plain(value: Value | None) -> Value | None:
    """Return the value, with an integral float converted to int, so that 4.0 and 4 agree."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


def _words(rule: Expression) -> str:
    return " ".join(rule.text.split())


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _hash(value: Mapping[str, Any] | Sequence[Any] | Value) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()[:16]
