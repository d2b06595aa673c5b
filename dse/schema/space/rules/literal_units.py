"""Inference of the units of a formula's literals from the units of its names.

In an expression tree, a literal is a plain number in the coherent unit that its position requires;
in a formula's text it needs the unit. If several literals could carry a unit, the first one does:
since coherent units convert with factor 1, every consistent choice has the same meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from dse.core.expressions import syntax
from dse.units import units
from dse.units.dimensions import TEXT

_AGREEING = frozenset({"min", "max", "sum", "all_different"})

_OPENED_BY: Mapping[str, Callable[[Sequence[bool]], bool]] = {
    **dict.fromkeys(("+", "-", "%", "min", "max", "sum"), all),
    **dict.fromkeys(("*", "/", "//", "product", "abs", "sqrt"), any),
    "**": lambda parts: parts[0],
}
"""Whether all or any operands must be open for the operation to be open (see :func:`_open`)."""


def with_units(
    node: syntax.Node, names: Mapping[str, str], spell: Callable[[syntax.Number], syntax.Number]
) -> syntax.Node:
    """Return the expression tree with a unit on each literal that needs one.

    Args:
        node: a formula with list members expanded and literals in coherent units.
        names: the unit of each name.
        spell: converts a literal with its coherent unit to the form to write.
    """
    return _Fitter(names, spell).fit(node, "")


class _Fitter:
    """Recursive inference of the units of the literals in an expression tree."""

    def __init__(
        self, names: Mapping[str, str], spell: Callable[[syntax.Number], syntax.Number]
    ) -> None:
        self._names = names
        self._spell = spell

    def fit(self, node: syntax.Node, wanted: str) -> syntax.Node:
        """Return the node with units on its literals, so that its unit is ``wanted``.

        ``wanted`` has no effect where names determine the unit of the node.
        """
        match node:
            case syntax.Number():
                return self._spell(syntax.Number(node.value, wanted)) if wanted else node
            case syntax.Unary():
                return syntax.rebuilt(node, [self.fit(node.operand, wanted)])
            case syntax.Binary():
                return self._arithmetic(node, wanted)
            case syntax.Compare() | syntax.Member():
                return syntax.rebuilt(node, self._convert_all(syntax.children(node), ""))
            case syntax.Call():
                return syntax.rebuilt(node, self._arguments(node, wanted))
            case syntax.Logic() | syntax.Lookup():
                return syntax.rebuilt(
                    node, [self.fit(child, "") for child in syntax.children(node)]
                )
            case _:
                return node

    def _convert_all(self, nodes: Sequence[syntax.Node], wanted: str) -> list[syntax.Node]:
        """Return operands that must have a common unit, with that unit on their literals.

        The unit is ``wanted`` if given, else that of the first operand whose names determine one. A
        literal 0 needs no unit.
        """
        unit = wanted or self._common(nodes)
        return [node if _is_zero(node) else self.fit(node, unit) for node in nodes]

    def _arithmetic(self, node: syntax.Binary, wanted: str) -> syntax.Node:
        if node.operator in ("+", "-", "%"):
            return syntax.rebuilt(node, self._convert_all((node.left, node.right), wanted))
        if node.operator == "**":
            return syntax.rebuilt(node, [self._base(node, wanted), self.fit(node.right, "")])
        left_carries = _open(node.left)
        if left_carries:
            right = self.fit(node.right, "")
            other = self._unit(right)
            unit = _times(wanted, other, -1 if node.operator == "*" else 1)
            return syntax.rebuilt(node, [self.fit(node.left, unit), right])
        left = self.fit(node.left, "")
        if not _open(node.right):
            return syntax.rebuilt(node, [left, self.fit(node.right, "")])
        own = self._unit(left)
        unit = _times(wanted, own, -1) if node.operator == "*" else _times(own, wanted, -1)
        return syntax.rebuilt(node, [left, self.fit(node.right, unit)])

    def _base(self, node: syntax.Binary, wanted: str) -> syntax.Node:
        power = node.right.value if isinstance(node.right, syntax.Number) else 1
        unit = _power(wanted, 1 / power) if wanted and power and _open(node.left) else ""
        return self.fit(node.left, unit)

    def _arguments(self, node: syntax.Call, wanted: str) -> list[syntax.Node]:
        if node.function in _AGREEING:
            return self._convert_all(node.arguments, wanted)
        if node.function == "product":
            return self._product(node.arguments, wanted)
        unit = {"abs": wanted, "sqrt": _power(wanted, 2)}.get(node.function, "")
        return [self.fit(argument, unit) for argument in node.arguments]

    def _product(self, nodes: Sequence[syntax.Node], wanted: str) -> list[syntax.Node]:
        carrier = next((place for place, node in enumerate(nodes) if _open(node)), None)
        found = [self.fit(node, "") for node in nodes]
        if carrier is not None:
            unit = wanted
            for place, node in enumerate(found):
                unit = unit if place == carrier else _times(unit, self._unit(node), -1)
            found[carrier] = self.fit(nodes[carrier], unit)
        return found

    def _unit(self, node: syntax.Node) -> str:
        """Return the unit of the node if every literal that may have a unit is dimensionless."""
        match node:
            case syntax.Name():
                found = self._names.get(node.name, "")
                return "" if found == TEXT else found
            case syntax.Lookup():
                return node.unit
            case syntax.Unary(operator="-"):
                return self._unit(node.operand)
            case syntax.Binary():
                return self._infer_binary_unit(node)
            case syntax.Call():
                return self._infer_call_unit(node)
            case _:
                return ""

    def _infer_binary_unit(self, node: syntax.Binary) -> str:
        if node.operator in ("+", "-", "%"):
            return self._common((node.left, node.right))
        left, right = self._unit(node.left), self._unit(node.right)
        if node.operator == "**":
            return _power(left, node.right.value) if isinstance(node.right, syntax.Number) else ""
        return _times(left, right, 1 if node.operator == "*" else -1)

    def _infer_call_unit(self, node: syntax.Call) -> str:
        if node.function in _AGREEING:
            return self._common(node.arguments)
        found = [self._unit(argument) for argument in node.arguments]
        if node.function == "product":
            return reduce(lambda left, right: _times(left, right, 1), found)
        return {"abs": found[0], "sqrt": _power(found[0], 0.5)}.get(node.function, "")

    def _common(self, nodes: Sequence[syntax.Node]) -> str:
        own = next((node for node in nodes if not _open(node)), None)
        named = own or next((node for node in nodes if syntax.names_in(node)), None)
        return "" if named is None else self._unit(named)


def _open(node: syntax.Node) -> bool:
    """Return whether the node can have any unit, because a literal in it can carry one."""
    match node:
        case syntax.Number():
            return True
        case syntax.Unary():
            return node.operator == "-" and _open(node.operand)
        case syntax.Binary():
            parts = [_open(node.left), _open(node.right)]
            return _OPENED_BY.get(node.operator, any)(parts)
        case syntax.Call():
            parts = [_open(argument) for argument in node.arguments]
            return node.function in _OPENED_BY and _OPENED_BY[node.function](parts)
        case _:
            return False


def _is_zero(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Number) and node.value == 0


def _times(left: str, right: str, power: int) -> str:
    """Return the unit of ``left * right ** power``, given the units of both."""
    return _short(units.unit(left) * units.unit(right) ** power) if right else left


def _power(unit: str, power: float) -> str:
    return _short(units.unit(unit) ** power) if unit else ""


def _short(of: object) -> str:
    """Return the text of a coherent unit: a named one such as ``W`` if it fits, else a product."""
    text = units.short(of)
    if units.same_dimension(text, ""):
        return ""
    named = units.coherent(text)
    return named if named.isalpha() else text
