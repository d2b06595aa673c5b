"""Lists in formulas: the keys and item nodes of a list, and elementwise operations on lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dse.core.expressions.syntax import Lookup, Name, Node, Number, Text, Truth
from dse.core.values import Value
from dse.errors import SpecError, nearest


@dataclass(frozen=True, kw_only=True)
class Items:
    """List in a formula, as the syntax-tree nodes of its items.

    ``name`` is used in messages, ``owner`` is the name of the list or table that defines the keys.
    The items are ``nodes`` or, for a column of a data table, the values of ``column`` in ``unit``,
    with ``None`` for a blank cell. ``flags`` and ``sizes`` have the same meaning as in
    :class:`~dse.core.expressions.list_rules.Listing`.
    """

    name: str
    owner: str
    keys: tuple[Value, ...]
    nodes: tuple[Node, ...] = ()
    column: tuple[Value | None, ...] | None = None
    unit: str = ""
    flags: bool = False
    sizes: tuple[Node, ...] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def all(self) -> tuple[Node, ...]:
        """Syntax-tree nodes of all items, in order."""
        return tuple(self.item(place) for place in range(len(self)))

    @cached_property
    def counted(self) -> bool:
        """Whether the list's keys are the integers 0 to n - 1 and not names."""
        return self.keys == tuple(range(len(self)))

    def item(self, place: int) -> Node:
        """Return the syntax-tree node of the item at a position, from 0.

        Raises:
            SpecError: the item is a blank cell.
        """
        if self.column is None:
            return self.nodes[place]
        value = self.column[place]
        if value is None:
            raise SpecError(f"{self.name} is blank at {self.keys[place]!r}", hint="fill the cell")
        return literal(value, self.unit)

    def place(self, key: Value) -> int:
        """Return the position of a key in the list; a negative integer key counts from the end.

        Raises:
            SpecError: there is no such key.
        """
        if not self.counted:
            if key in self._places:
                return self._places[key]
            hint = nearest(str(key), (str(known) for known in self.keys))
            raise SpecError(f"{self.owner} has no {key!r}", hint=hint)
        whole = not isinstance(key, bool | str) and key in range(-len(self), len(self))
        if whole:
            return int(key) % len(self)
        hint = f"its items are 0 to {len(self) - 1}, and -1 is the last"
        raise SpecError(f"{self.owner} has no item {key!r}", hint=hint if self.keys else "")

    def looked_up(self, key: Node) -> Lookup:
        """Return a syntax-tree node that looks up an item whose key depends on the design.

        The value is unknown for a blank cell.

        Raises:
            SpecError: the items are parameters, not data.
        """
        if self.column is None:
            hint = f"write a number, or a rule over all of them: all({self.name} <= 8)"
            raise SpecError(f"the index of {self.name} must be a constant", hint=hint)
        shown = key.name if isinstance(key, Name) else "..."
        text = f"{self.owner}[{shown}]{self.name.removeprefix(self.owner)}"
        return Lookup(key, self._entries, self.unit, text)

    def ordered_as(self, other: Items) -> Sequence[Node]:
        """Return the items in the order of another list, matched by key or else by position.

        Raises:
            SpecError: the lists differ in length or in keys.
        """
        if len(self) != len(other):
            raise SpecError(
                f"{other.name} has {len(other)} items, but {self.name} has {len(self)}",
                hint="lists are combined item by item, so they need equal lengths",
            )
        if self.counted or other.counted or self.keys == other.keys:
            return self.all
        missing = next((key for key in other.keys if key not in self._places), None)
        if missing is not None:
            raise SpecError(
                f"{other.name} has {missing!r}, but {self.name} does not",
                hint="lists with named items are combined by name",
            )
        return [self.item(self._places[key]) for key in other.keys]

    def __contains__(self, key: object) -> bool:
        return key in self._places

    @cached_property
    def _places(self) -> dict[Value, int]:
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def _entries(self) -> tuple[tuple[Value, Value], ...]:
        pairs = zip(self.keys, self.column or (), strict=True)
        return tuple((key, value) for key, value in pairs if value is not None)


Operand = Node | Items
"""Expanded part of a formula: one value or a list."""


def literal(value: Value, unit: str = "") -> Node:
    """Return a syntax-tree node for a literal value."""
    if isinstance(value, bool):
        return Truth(value)
    return Text(value) if isinstance(value, str) else Number(value, unit)


def by_item(parts: Iterable[Operand], build: Callable[[Sequence[Node]], Node]) -> Operand:
    """Build a syntax-tree node from operands or, if an operand is a list, one node per item.

    For lists, ``build`` is applied item by item; operands that are single values are repeated.

    Raises:
        SpecError: lists differ in length or in the names of their items.
    """
    parts = tuple(parts)
    lists = [part for part in parts if isinstance(part, Items)]
    if not lists:
        return build([part for part in parts if not isinstance(part, Items)])
    lead = next((one for one in lists if not one.counted), lists[0])
    rows = [
        part.ordered_as(lead) if isinstance(part, Items) else [part] * len(lead) for part in parts
    ]
    nodes = tuple(build(row) for row in zip(*rows, strict=True))
    return Items(name=lists[0].name, owner=lead.owner, keys=lead.keys, nodes=nodes)
