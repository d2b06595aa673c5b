"""Expansion of formulas over lists and data tables to formulas over single names.

Arithmetic, comparisons and logic on lists are elementwise; reductions such as ``sum``, ``count``
and ``all`` turn a list into one value. ``devices[chip].memory`` with a parameter as key becomes a
:class:`~dse.core.expressions.expression.Lookup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dse.core.design import base
from dse.core.expressions import reductions as folds
from dse.core.expressions import syntax
from dse.core.expressions.error_position import build_position_error
from dse.core.expressions.expression import Expression
from dse.core.expressions.items import Items, Operand, by_item
from dse.core.expressions.operators import FUNCTIONS
from dse.core.values import Value
from dse.errors import SpecError, nearest

MAX_PARTS = 200_000
"""Most list items that one formula may expand to; an item counts each time it is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """List of parameters: the key of each item, and the syntax-tree node of its parameter.

    ``keys`` are 0 to n - 1, or the items' names (of a subset or of shares); ``nodes`` holds one
    parameter per key. ``flags`` is true for a subset: each of its parameters is a Boolean, true if
    the key is selected. For a partition into a fixed number of segments, ``sizes`` holds the
    segments' lengths.
    """

    keys: tuple[Value, ...]
    nodes: tuple[syntax.Node, ...]
    flags: bool = False
    sizes: tuple[syntax.Node, ...] | None = None


def listings(names: Iterable[str]) -> dict[str, Listing]:
    """Group parameters such as ``bits[0]`` into lists, by list name, each in order of its keys."""
    found: dict[str, list[str]] = {}
    for name in names:
        if base(name) != name:
            found.setdefault(base(name), []).append(name[len(base(name)) + 1 : -1])
    return {own: _listing(own, keys) for own, keys in found.items()}


def _listing(own: str, words: Sequence[str]) -> Listing:
    numbered = all(word.isdigit() for word in words)
    keys: list[Value] = sorted(map(int, words)) if numbered else sorted(words)
    return Listing(keys=tuple(keys), nodes=tuple(syntax.Name(f"{own}[{key}]") for key in keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Data table of a space: columns with one value per key, in coherent ``units``.

    A blank cell is ``None``.
    """

    keys: tuple[Value, ...]
    columns: Mapping[str, tuple[Value | None, ...]]
    units: Mapping[str, str] = field(default_factory=dict)


def expand_lists(
    rule: Expression, lists: Mapping[str, Listing], data: Mapping[str, Table]
) -> Expression:
    """Expand the formula so that it names only single parameters; its text is unchanged.

    Args:
        rule: the formula.
        lists: the lists of parameters by name.
        data: the data tables by name.

    Raises:
        SpecError: a list is used where one value is needed, lists differ in length, an index is
            out of range, or a table has no such key or field.
    """
    writer = _Writer(_Sources(lists, data))
    try:
        return Expression(rule.text, writer.one(rule.node))
    except SpecError as error:
        raise build_position_error(error.problem, rule.text, writer.column, error.hint) from error


@dataclass(frozen=True)
class _Sources:
    """Lists of parameters and data tables, by name, to which a formula may refer."""

    lists: Mapping[str, Listing]
    data: Mapping[str, Table]

    @cached_property
    def _columns(self) -> dict[tuple[str, str], Items]:
        return {}

    def named(self, name: str) -> Items | None:
        """Return the list of parameters or the table column of this name; ``None`` if neither.

        Raises:
            SpecError: the name is the name of a table, or the table has no such column.
        """
        if name in self.lists:
            one = self.lists[name]
            return Items(
                name=name,
                owner=name,
                keys=one.keys,
                nodes=one.nodes,
                flags=one.flags,
                sizes=one.sizes,
            )
        if name in self.data:
            column = next(iter(self.data[name].columns), "column")
            raise SpecError(
                f"{name} is a table, not a list", hint=f"use a column, such as {name}.{column}"
            )
        table, _, column = name.rpartition(".")
        return self.column(table, column) if table in self.data else None

    def column(self, table: str, name: str) -> Items:
        """Return a column of a table as a list.

        Raises:
            SpecError: the table has no such column.
        """
        data = self.data[table]
        if name not in data.columns:
            raise SpecError(f"{table} has no field {name!r}", hint=nearest(name, data.columns))
        if (table, name) not in self._columns:
            self._columns[table, name] = Items(
                name=f"{table}.{name}",
                owner=table,
                keys=data.keys,
                column=data.columns[name],
                unit=data.units.get(name, ""),
            )
        return self._columns[table, name]

    def keys(self, table: str) -> Items:
        """Return the keys of a table as a list."""
        keys = self.data[table].keys
        return Items(name=table, owner=table, keys=keys, column=keys)

    def missing(self, node: syntax.Node) -> SpecError:
        """Return the error for a single value that is used as a list."""
        if not isinstance(node, syntax.Name):
            return SpecError("the expression before '[' is not a list")
        return SpecError(
            f"{node.name} is not a list", hint=nearest(node.name, [*self.lists, *self.data])
        )


class _Writer:
    """Expander of the lists in one formula; ``column`` is the text position of an error in it."""

    def __init__(self, sources: _Sources) -> None:
        self.sources = sources
        self.column: int | None = None
        self.parts = 0

    def one(self, node: syntax.Node) -> syntax.Node:
        """Return the expanded node of a single value; SpecError if the node is a list."""
        found = self.value(node)
        if not isinstance(found, Items):
            return found
        self.column = _column(node)
        truths = found.flags or any(
            syntax.is_truth(n) and not isinstance(n, syntax.Name) for n in found.all
        )
        hint = "all(...), any(...) or count(...)" if truths else "sum(...), max(...), all(... <= 8)"
        problem = f"{found.name} is a list of {len(found)}, but one value is needed"
        raise SpecError(problem, hint=f"reduce it to one value: {hint}")

    def value(self, node: syntax.Node) -> Operand:
        """Return the expanded node, which is a single value or a list."""
        try:
            return self._value(node)
        except SpecError:
            if self.column is None:
                self.column = _column(node)
            raise

    def _value(self, node: syntax.Node) -> Operand:
        match node:
            case syntax.Name():
                found = self.sources.named(node.name)
                return node if found is None else found
            case syntax.Call():
                return self._call(node)
            case syntax.Index():
                return self._index(node)
            case syntax.Field():
                return self._field(node)
            case syntax.Absent():
                return self._by_item(node, lambda parts: _absent(node, parts[0]))
            case _:
                return self._by_item(node, lambda parts: syntax.rebuilt(node, parts))

    def _by_item(
        self, node: syntax.Node, build: Callable[[Sequence[syntax.Node]], syntax.Node]
    ) -> Operand:
        found = by_item([self.value(child) for child in syntax.children(node)], build)
        self._charge([found])
        return found

    def _charge(self, parts: Sequence[Operand]) -> None:
        self.parts += sum(len(part) for part in parts if isinstance(part, Items))
        if self.parts > MAX_PARTS:
            raise SpecError(
                f"the lists have more than {MAX_PARTS:,} items in all", hint="use smaller lists"
            )

    def _call(self, node: syntax.Call) -> Operand:
        function = node.function
        if function in FUNCTIONS and not FUNCTIONS[function].lists:
            return self._by_item(node, lambda parts: syntax.rebuilt(node, parts))
        if function in ("len", "in"):
            arguments = [
                *map(self.value, node.arguments[:-1]),
                self._read_table_keys(node.arguments[-1]),
            ]
        else:
            arguments = [self.value(argument) for argument in node.arguments]
        self._charge([] if function == "len" else arguments)
        match function:
            case "count":
                return folds.count(arguments)
            case "len":
                return folds.length(arguments[0])
            case "sizes":
                return folds.sizes(arguments[0])
            case "sums":
                return folds.sums(arguments)
            case "in":
                return self._within(arguments)
            case _:
                return folds.fold(function, arguments)

    def _read_table_keys(self, node: syntax.Node) -> Operand:
        """Return the expanded node; a table's name becomes the list of its keys."""
        if isinstance(node, syntax.Name) and node.name in self.sources.data:
            return self.sources.keys(node.name)
        return self.value(node)

    def _within(self, arguments: Sequence[Operand]) -> Operand:
        item, found = arguments
        if isinstance(item, Items) and isinstance(found, Items):
            self._charge([found] * len(item))
        return folds.within(arguments)

    def _index(self, node: syntax.Index) -> Operand:
        found = self.value(node.item)
        if not isinstance(found, Items):
            raise self.sources.missing(node.item)
        return self._at(found, node.key)

    def _field(self, node: syntax.Field) -> Operand:
        table = node.item.item if isinstance(node.item, syntax.Index) else None
        if not isinstance(table, syntax.Name) or table.name not in self.sources.data:
            raise SpecError(
                f"there is no field {node.field!r} here: only a row of a table has fields",
                hint=nearest(
                    table.name if isinstance(table, syntax.Name) else "", self.sources.data
                ),
            )
        assert isinstance(node.item, syntax.Index)
        return self._at(self.sources.column(table.name, node.field), node.item.key)

    def _at(self, found: Items, key: syntax.Node) -> Operand:
        """Return the item at a key, which is a constant, an unquoted item name or a formula."""
        if isinstance(key, syntax.Name) and found.column is None and key.name in found:
            return found.item(found.place(key.name))
        return by_item(
            [self.value(key)], lambda parts: _pick_item(found, folds.fold_constant(parts[0]))
        )


def _pick_item(found: Items, key: syntax.Node) -> syntax.Node:
    """Return the list's item at a constant key; for any other key, a lookup for each design."""
    if isinstance(key, syntax.Text | syntax.Truth) or (
        isinstance(key, syntax.Number) and not key.unit
    ):
        return found.item(found.place(key.value))
    return found.looked_up(key)


def _absent(node: syntax.Absent, name: syntax.Node) -> syntax.Node:
    if not isinstance(name, syntax.Name):
        raise SpecError("only a parameter can be absent")
    return syntax.rebuilt(node, [name])


def _column(node: syntax.Node) -> int | None:
    """Return the text position of the node's first name; ``None`` if it has no names."""
    return next((name.column for name in syntax.names_in(node)), None)
