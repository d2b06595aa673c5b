"""The tree that a formula is: one class for each kind of node, and walks over them."""

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
    """``x is absent`` or ``x is not absent``; an ``Index`` is written out to a name."""

    name: Name | Index
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function of :data:`~dse.core.expressions.operators.FUNCTIONS`, or one that is written out.

    ``in`` of an item and a list is ``x in bits``, which no user can write as a call.
    """

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """``bits[0]`` or ``devices[chip]``.

    Written out by :func:`~dse.core.expressions.list_rules.expand_lists`.
    """

    item: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Field:
    """``devices[chip].memory``.

    Written out by :func:`~dse.core.expressions.list_rules.expand_lists`.
    """

    item: Node
    field: str


@dataclass(frozen=True)
class Lookup:
    """The value whose key equals ``key``, in ``unit``; unknown where there is none.

    ``text`` is how the formula says it.
    """

    key: Node
    entries: tuple[tuple[Value, Value], ...]
    unit: str = ""
    text: str = ""

    @cached_property
    def prepared(self) -> ValueMap:
        """The entries, ready to look many keys up at once."""
        return ValueMap(self.entries)


@dataclass(frozen=True)
class Listed:
    """Test of whether the names' values form one of the rows (or, negated, none of them).

    A value is met by the same value alone, a ``None`` by an absent one alone, row by row. Where
    all names are absent and no row is all ``None``, the answer is unknown.
    """

    names: tuple[Name, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    negated: bool = False

    @cached_property
    def prepared(self) -> CombinationIndex:
        """The rows, ready to find many combinations at once."""
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
"""Functions of lists that are written out: the fewest and the most arguments of each."""


def children(node: Node) -> Sequence[Node]:  # noqa: C901 - one case per kind of node
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
    """All names in a tree, left to right."""
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
    """The node with these operands in place of its own, in the order of :func:`children`.

    What stands where only a name can stay a name keeps it if the part is none.
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
    """False if the tree is surely a number or a word; a name may stand for a truth."""
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
    """Return the same table over other names.

    Where no name changes it is the same object, with all that it prepared.
    """
    pairs = zip(names, node.names, strict=True)
    kept = tuple(new if isinstance(new, Name) else old for new, old in pairs)
    return node if kept == node.names else replace(node, names=kept)
