"""Syntax tree of a formula: one class for each kind of node, and traversals of the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from dse.core.expressions.lookup import CombinationIndex, ValueMap
from dse.core.expressions.operators import FUNCTIONS
from dse.core.values import Value


@dataclass(frozen=True, slots=True)
class Number:
    """Numeric literal; :meth:`Expression.resolve_units` folds the text ``unit`` into ``value``."""

    value: int | float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """String literal, such as the value of a choice."""

    value: str


@dataclass(frozen=True, slots=True)
class Truth:
    """Boolean literal: ``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Name:
    """Reference to a parameter or a metric; ``column`` is its position in the text, from 0."""

    name: str
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """Unary operation: ``-x`` or ``not x``."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """Syntax-tree node for an arithmetic operation on two operands."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """Chain of comparisons such as ``a < b <= c``: one more operand than operators."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """Logical operation ``and``, ``or`` or ``->`` on two or more operands."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """Membership test: ``x in [a, b]`` or ``x not in [a, b]``."""

    item: Node
    values: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """Test ``x is absent`` or ``x is not absent``, where x is a parameter or an item of a list."""

    name: Name | Index
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """Syntax-tree node of a function call.

    The function is one of :data:`~dse.core.expressions.operators.FUNCTIONS`, or of
    :data:`LIST_FUNCTIONS`, which are expanded before evaluation. ``x in bits`` is stored as a call
    of ``in`` with an item and a list; users cannot write it as a call.
    """

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """Item of a list or row of a table: ``bits[0]`` or ``devices[chip]``.

    :func:`~dse.core.expressions.list_rules.expand_lists` replaces it before evaluation.
    """

    item: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a table's row: ``devices[chip].memory``.

    :func:`~dse.core.expressions.list_rules.expand_lists` replaces it before evaluation.
    """

    item: Node
    field: str


@dataclass(frozen=True)
class Lookup:
    """Table lookup of the value at ``key``, in ``unit``; unknown where no entry has that key.

    ``text`` is how the formula writes the lookup.
    """

    key: Node
    entries: tuple[tuple[Value, Value], ...]
    unit: str = ""
    text: str = ""

    @cached_property
    def prepared(self) -> ValueMap:
        """Index of the entries for looking up many keys at once."""
        return ValueMap(self.entries)


@dataclass(frozen=True)
class Listed:
    """Table constraint: the names' values form one of the rows or, if negated, none of them.

    A value in a row matches only the same value, and ``None`` matches only an absent parameter.
    If all names are absent and no row is all ``None``, the result is unknown.
    """

    names: tuple[Name, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    negated: bool = False

    @cached_property
    def prepared(self) -> CombinationIndex:
        """Index of the rows for finding many combinations at once."""
        return CombinationIndex(self.rows, len(self.names))


Node = (
    Number
    | Text
    | Truth
    | Name
    | Unary
    | Binary
    | Compare
    | Logic
    | Member
    | Absent
    | Call
    | Index
    | Field
    | Lookup
    | Listed
)


LIST_FUNCTIONS: Mapping[str, tuple[int, int | None]] = {
    "count": (1, 2),
    "all": (1, None),
    "any": (1, None),
    "len": (1, 1),
    "sizes": (1, 1),
    "sums": (2, 2),
}
"""List functions that are expanded before evaluation: least and most arguments of each."""


def children(node: Node) -> Sequence[Node]:  # noqa: C901 - one case per kind of node
    """Return the operands of a syntax-tree node."""
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
        case Index():
            return (node.item, node.key)
        case Field():
            return (node.item,)
        case Lookup():
            return (node.key,)
        case Listed():
            return node.names
        case _:
            assert_never(node)


def names_in(node: Node) -> list[Name]:
    """Return every ``Name`` node in a tree, left to right, with repetitions."""
    if isinstance(node, Name):
        return [node]
    return [name for child in children(node) for name in names_in(child)]


def map_nodes(node: Node, change: Callable[[Node], Node]) -> Node:
    """Apply ``change`` to every node of the tree, leaves first, and return the new tree."""
    own = children(node)
    return change(rebuilt(node, [map_nodes(child, change) for child in own]) if own else node)


def rebuilt(  # noqa: C901, PLR0912 - one case per kind of node
    node: Node, parts: Sequence[Node]
) -> Node:
    """Return the node with other operands, in the order of :func:`children`.

    An operand that must be a name is left unchanged if its replacement is not a name.
    """
    match node:
        case Number() | Text() | Truth() | Name():
            return node
        case Unary():
            return Unary(node.operator, parts[0])
        case Binary():
            return Binary(node.operator, parts[0], parts[1])
        case Compare():
            return Compare(node.operators, tuple(parts))
        case Logic():
            return Logic(node.operator, tuple(parts))
        case Member():
            return Member(parts[0], tuple(parts[1:]), node.negated)
        case Absent():
            one = parts[0]
            return Absent(one, node.negated) if isinstance(one, Name | Index) else node
        case Call():
            return Call(node.function, tuple(parts))
        case Index():
            return Index(parts[0], parts[1])
        case Field():
            return Field(parts[0], node.field)
        case Lookup():
            return node if parts[0] is node.key else replace(node, key=parts[0])
        case Listed():
            return _with_names(node, parts)
        case _:
            assert_never(node)


def is_truth(node: Node) -> bool:
    """Return whether the node may yield a Boolean; a bare name may, a number or text never does."""
    match node:
        case Number() | Text() | Binary() | Index() | Field():
            return False
        case Unary():
            return node.operator == "not"
        case Call():
            known = FUNCTIONS.get(node.function)
            return known.truth if known else node.function in ("all", "any", "in")
        case Lookup():
            return all(isinstance(value, bool) for _, value in node.entries)
        case _:
            return True


def _with_names(node: Listed, names: Sequence[Node]) -> Listed:
    """Return the table constraint with other names; the same object if none changes."""
    pairs = zip(names, node.names, strict=True)
    kept = tuple(new if isinstance(new, Name) else old for new, old in pairs)
    return node if kept == node.names else replace(node, names=kept)
