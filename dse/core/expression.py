"""Formulas over names: the tree that a text is parsed to, and its value over columns.

Absent parameters make a value *unknown* (Kleene's three-valued logic): arithmetic and comparisons
over an unknown are unknown; ``and``, ``or``, ``not`` and ``->`` are unknown only where the known
operands do not decide; ``is absent`` is always known. A constraint that is unknown holds; a
condition that is unknown does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from dse.core.batch import Column, typed
from dse.core.values import Array, Mask, Value


@dataclass(frozen=True, slots=True)
class Number:
    """A literal; ``unit`` is its text until :meth:`Expression.resolved` folds it into the value."""

    value: int | float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A literal text, such as the value of a choice."""

    value: str


@dataclass(frozen=True, slots=True)
class Truth:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter or a metric; ``column`` is its place in the text, from 0."""

    name: str
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x`` or ``not x``."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic on two operands."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain such as ``a < b <= c``: one more operand than operators."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """``and``, ``or`` or ``->`` over two or more operands."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """``x in [a, b]`` or ``x not in [a, b]``."""

    item: Node
    values: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """``x is absent`` or ``x is not absent``."""

    name: Name
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the table :data:`FUNCTIONS`."""

    function: str
    arguments: tuple[Node, ...]


Node = Number | Text | Truth | Name | Unary | Binary | Compare | Logic | Member | Absent | Call


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the expression language: how many arguments it takes and what it computes."""

    least: int
    most: int | None
    compute: Callable[..., Array]


def _is_pow2(values: Array) -> Array:
    whole = np.asarray(values, dtype=np.float64)
    mantissa, _ = np.frexp(whole)
    return (mantissa == 0.5) & (whole >= 1)


FUNCTIONS: Mapping[str, Function] = {
    "min": Function(2, None, lambda *values: np.minimum.reduce(np.broadcast_arrays(*values))),
    "max": Function(2, None, lambda *values: np.maximum.reduce(np.broadcast_arrays(*values))),
    "abs": Function(1, 1, np.abs),
    "log2": Function(1, 1, np.log2),
    "sqrt": Function(1, 1, np.sqrt),
    "ceil": Function(1, 1, np.ceil),
    "floor": Function(1, 1, np.floor),
    "is_pow2": Function(1, 1, _is_pow2),
}

_ARITHMETIC: Mapping[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}

_ORDER: Mapping[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


_WHOLE_END = 2.0**62
"""Whole numbers from here on are computed as floats."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed formula with the text that it came from."""

    text: str
    node: Node

    @property
    def names(self) -> frozenset[str]:
        """Every parameter and metric that the formula mentions."""
        return frozenset(name.name for name in names_in(self.node))

    def values(self, columns: Mapping[str, Column], size: int) -> Column:
        """The formula's value in each of ``size`` rows, absent where it is unknown."""
        with np.errstate(all="ignore"):
            known = _evaluate(self.node, columns)
        values = np.broadcast_to(known.values, (size,))
        absent = None if known.absent is None else np.broadcast_to(known.absent, (size,))
        return Column(values, absent)

    def holds(self, columns: Mapping[str, Column], size: int, *, unknown: bool) -> Mask:
        """Where the formula is true; ``unknown`` is the answer where it cannot be told."""
        result = self.values(columns, size)
        truth = result.values.astype(bool)
        return truth if result.absent is None else np.where(result.absent, unknown, truth)

    def resolved(self, factor: Callable[[str], float]) -> Expression:
        """The same formula with each literal's unit folded into its value by ``factor``."""
        return Expression(self.text, mapped(self.node, lambda node: _folded(node, factor)))

    def renamed(self, names: Callable[[str], str]) -> Expression:
        """The same formula over other names; the text stays as it was written."""
        return Expression(
            self.text,
            mapped(
                self.node,
                lambda node: (
                    Name(names(node.name), node.column) if isinstance(node, Name) else node
                ),
            ),
        )


def children(node: Node) -> Sequence[Node]:
    """The operands of a node."""
    match node:
        case Number() | Text() | Truth() | Name():
            return ()
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Compare() | Logic():
            return node.operands
        case Member():
            return (node.item, *node.values)
        case Absent():
            return (node.name,)
        case Call():
            return node.arguments
        case _:
            assert_never(node)


def names_in(node: Node) -> list[Name]:
    """All names in a tree, left to right."""
    if isinstance(node, Name):
        return [node]
    return [name for child in children(node) for name in names_in(child)]


def mapped(  # noqa: C901 - one case per kind of node
    node: Node, change: Callable[[Node], Node]
) -> Node:
    """The tree with ``change`` applied to every node, leaves first."""
    match node:
        case Number() | Text() | Truth() | Name():
            same: Node = node
        case Unary():
            same = Unary(node.operator, mapped(node.operand, change))
        case Binary():
            same = Binary(node.operator, mapped(node.left, change), mapped(node.right, change))
        case Compare():
            same = Compare(node.operators, _all_mapped(node.operands, change))
        case Logic():
            same = Logic(node.operator, _all_mapped(node.operands, change))
        case Member():
            same = Member(mapped(node.item, change), _all_mapped(node.values, change), node.negated)
        case Absent():
            name = mapped(node.name, change)
            same = Absent(name if isinstance(name, Name) else node.name, node.negated)
        case Call():
            same = Call(node.function, _all_mapped(node.arguments, change))
        case _:
            assert_never(node)
    return change(same)


def _all_mapped(nodes: Sequence[Node], change: Callable[[Node], Node]) -> tuple[Node, ...]:
    return tuple(mapped(node, change) for node in nodes)


def _folded(node: Node, factor: Callable[[str], float]) -> Node:
    if isinstance(node, Number) and node.unit:
        value = node.value * factor(node.unit)
        return Number(int(value) if value == int(value) and abs(value) < 2**53 else value)
    return node


def _evaluate(  # noqa: C901 - one case per kind of node
    node: Node, columns: Mapping[str, Column]
) -> Column:
    match node:
        case Number() | Text() | Truth():
            return _constant(node.value)
        case Name():
            return columns[node.name]
        case Unary():
            operand = _evaluate(node.operand, columns)
            if node.operator == "not":
                return _negation(operand)
            return Column(np.negative(_counted(operand.values)), operand.absent)
        case Binary():
            return _arithmetic(node, columns)
        case Compare():
            return _comparison(node, columns)
        case Logic():
            return _logic(node, columns)
        case Member():
            return _membership(node, columns)
        case Absent():
            gone = columns[node.name.name].absent
            absent = np.array([False]) if gone is None else gone
            return Column(np.logical_not(absent) if node.negated else absent)
        case Call():
            arguments = [_evaluate(argument, columns) for argument in node.arguments]
            values = FUNCTIONS[node.function].compute(*(_counted(a.values) for a in arguments))
            return Column(values, _either([a.absent for a in arguments]))
        case _:
            assert_never(node)


def _constant(value: Value) -> Column:
    return Column(typed((value,)))


def _arithmetic(node: Binary, columns: Mapping[str, Column]) -> Column:
    left, right = _evaluate(node.left, columns), _evaluate(node.right, columns)
    a, b = _counted(left.values), _counted(right.values)
    by_zero = node.operator in ("//", "%") and bool((b == 0).any())
    if by_zero or node.operator == "**":  # whole numbers would give 0, or refuse a negative power
        a, b = a.astype(np.float64), b.astype(np.float64)
    values = _ARITHMETIC[node.operator](a, b)
    if values.dtype == np.int64 and node.operator in ("+", "-", "*"):
        exact = _ARITHMETIC[node.operator](a.astype(np.float64), b.astype(np.float64))
        if (np.abs(exact) >= _WHOLE_END).any():  # 64 bits would wrap round
            values = exact
    return Column(values, _either([left.absent, right.absent]))


def _counted(values: Array) -> Array:
    """Truth values as 0 and 1, so that they can be added up."""
    return values.astype(np.int64) if values.dtype == bool else values


def _comparison(node: Compare, columns: Mapping[str, Column]) -> Column:
    operands = [_evaluate(operand, columns) for operand in node.operands]
    links = [
        Column(_compared(op, a, b), _either([a.absent, b.absent]))
        for op, a, b in zip(node.operators, operands, operands[1:], strict=False)
    ]
    return links[0] if len(links) == 1 else _conjunction(links)


def _compared(operator: str, left: Column, right: Column) -> Array:
    if operator in ("==", "!="):
        equal = _equal(left, right)
        return equal if operator == "==" else np.logical_not(equal)
    return _ORDER[operator](left.values, right.values)


def _equal(left: Column, right: Column) -> Array:
    if left.codes is not None and right.values.size == 1 and left.absent is None:
        wanted = right.values[0]
        matches = np.array([value == wanted for value in left.domain], dtype=bool)
        return matches[left.codes]
    return np.asarray(left.values == right.values, dtype=bool)


def _membership(node: Member, columns: Mapping[str, Column]) -> Column:
    item = _evaluate(node.item, columns)
    values = [_evaluate(value, columns) for value in node.values]
    differ = [
        Column(np.logical_not(_equal(item, value)), _either([item.absent, value.absent]))
        for value in values
    ]
    none = _conjunction(differ)
    return none if node.negated else _negation(none)


def _logic(node: Logic, columns: Mapping[str, Column]) -> Column:
    operands = [_evaluate(operand, columns) for operand in node.operands]
    if node.operator == "and":
        return _conjunction(operands)
    if node.operator == "->":
        operands = [_negation(operands[0]), *operands[1:]]
    return _negation(_conjunction([_negation(operand) for operand in operands]))


def _negation(operand: Column) -> Column:
    return Column(np.logical_not(operand.values.astype(bool)), operand.absent)


def _conjunction(operands: Sequence[Column]) -> Column:
    """Kleene's and: false where any is known false, else unknown where any is unknown."""
    false = [
        np.logical_not(operand.values.astype(bool))
        if operand.absent is None
        else np.logical_not(operand.values.astype(bool)) & ~operand.absent
        for operand in operands
    ]
    refuted = np.logical_or.reduce(np.broadcast_arrays(*false))
    unknown = _either([operand.absent for operand in operands])
    return Column(np.logical_not(refuted), None if unknown is None else unknown & ~refuted)


def _either(masks: Sequence[Mask | None]) -> Mask | None:
    present = [mask for mask in masks if mask is not None]
    if not present:
        return None
    return np.logical_or.reduce(np.broadcast_arrays(*present))
