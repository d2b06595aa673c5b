"""Serialization of a space's constraints and activity conditions as formula texts.

The original text of a rule is kept if it still parses to the same rule. Otherwise a text is
generated from the expression tree, in which list members and lookups are expanded: units of
literals are inferred, and the data tables for lookups are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.items import literal
from dse.core.expressions.list_rules import Listing, Table, expand_lists
from dse.core.expressions.parser import MAX_LENGTH, parse
from dse.core.expressions.printer import format_node
from dse.core.inspection.fingerprint import form, without_strangers
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import SpecError
from dse.schema.models import is_name
from dse.schema.space.parameters.number_text import spell_number
from dse.schema.space.rule_parser import units_of
from dse.schema.space.rules.literal_units import with_units
from dse.units import dimensions, units

_LOOKUP = re.compile(r"(?P<table>[\w.]+)\[.*\]\.(?P<field>\w+)", re.DOTALL)


class RuleWriter:
    """Converter of a space's rules to formula texts.

    ``tables`` collects the data tables that the texts look up and that must be written too.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        self._data: Mapping[str, Table] = space.data
        self._units = units_of(space.parameters)
        self._listings: dict[str, Listing] = {n: one.listing for n, one in space.lists.items()}
        self._nodes = {
            node.name: syntax.Index(syntax.Name(name), literal(key))
            for name, one in self._listings.items()
            for key, node in zip(one.keys, one.nodes, strict=True)
            if isinstance(node, syntax.Name)
        }
        self.tables: dict[str, Table] = {}

    def texts(self, rule: Expression) -> Iterator[str]:
        """Yield the text of the rule; a conjunction that is too long is split into several texts.

        Raises:
            SpecError: the rule cannot be expressed as a text.
        """
        if self._reads_as(rule.text, rule.node, self._data):
            self._use(rule.text)
            yield rule.text
            return
        for node in self._parts(rule.node):
            text = self._format_node(node)
            if not self._reads_as(text, node, self.tables):
                raise SpecError(f"the rule {rule.text!r} cannot be written as a text")
            yield text

    def text(self, rule: Expression) -> str:
        """Return a rule of the space as a single formula text.

        Raises:
            SpecError: the rule cannot be expressed as a text, or is too long for one.
        """
        first, *more = self.texts(rule)
        if more:
            raise SpecError(f"the condition {rule.text!r} is too long to be written as a text")
        return first

    def _parts(self, node: syntax.Node) -> list[syntax.Node]:
        """Split a conjunction into formulas short enough to parse; keep other nodes unchanged."""
        if not isinstance(node, syntax.Logic) or node.operator != "and":
            return [node]
        long = len(self._format_node(node)) > MAX_LENGTH
        return [part for one in node.operands for part in self._parts(one)] if long else [node]

    def _format_node(self, node: syntax.Node) -> str:
        plain = syntax.map_nodes(node, self._plain)
        measured = with_units(plain, self._units, self._spell_number)
        return format_node(syntax.map_nodes(measured, self._translate_name))

    def _spell_number(self, number: syntax.Number) -> syntax.Number:
        value, _, unit = spell_number(number.value, number.unit).partition(" ")
        return syntax.Number(int(value) if value.lstrip("-").isdecimal() else float(value), unit)

    def _plain(self, node: syntax.Node) -> syntax.Node:
        """Rewrite a node that has no notation in the expression language as an equivalent one."""
        match node:
            case syntax.Call(arguments=(only,)) if node.function in _NEUTRAL:
                neutral = _NEUTRAL[node.function]
                return syntax.Call(
                    node.function, (only, only if neutral is None else syntax.Number(neutral))
                )
            case syntax.Member(values=()):
                return syntax.Truth(node.negated)
            case syntax.Listed():
                return _alternatives(node)
            case _:
                return without_strangers(node, self._space.by_name)

    def _translate_name(self, node: syntax.Node) -> syntax.Node:
        """Return a name or lookup in file notation: ``bits[0]``, ``table[key].field``."""
        if isinstance(node, syntax.Name):
            return self._nodes.get(node.name, node)
        if isinstance(node, syntax.Lookup):
            table, field = self._table(node)
            return syntax.Field(syntax.Index(syntax.Name(table), node.key), field)
        return node

    def _table(self, node: syntax.Lookup) -> tuple[str, str]:
        """Return the names of a data table and its column for a lookup; add them if missing."""
        found = _LOOKUP.fullmatch(node.text)
        table, field = (found["table"], found["field"]) if found else ("table", "value")
        base, number = table if is_name(table) else "table", 2
        table = base
        while not self._fits(node, table, field):
            table, number = f"{base}_{number}", number + 1
        self._add(node, table, field)
        return table, field

    def _fits(self, node: syntax.Lookup, table: str, field: str) -> bool:
        if table in self._space.by_name or table in self._listings:
            return False
        known = self.tables.get(table) or self._data.get(table)
        if known is None:
            return True
        keys, values = (tuple(side) for side in zip(*node.entries, strict=True))
        unit = known.units.get(field, "")
        return known.keys == keys and (
            field not in known.columns or (known.columns[field], unit) == (values, node.unit)
        )

    def _add(self, node: syntax.Lookup, table: str, field: str) -> None:
        keys, values = (tuple(side) for side in zip(*node.entries, strict=True))
        known = self.tables.get(table) or self._data.get(table) or Table(keys=keys, columns={})
        self.tables[table] = replace(
            known,
            columns={**known.columns, field: values},
            units={**known.units, field: node.unit},
        )

    def _use(self, text: str) -> None:
        """Record in ``tables`` the data tables that a rule's text looks up."""
        for name in syntax.names_in(parse(text).node):
            head = name.name if name.name in self._data else name.name.rpartition(".")[0]
            if head in self._data:
                self.tables.setdefault(head, self._data[head])

    def _reads_as(self, text: str, node: syntax.Node, data: Mapping[str, Table]) -> bool:
        """Return whether the text, parsed with these data tables, is equivalent to the node."""
        try:
            read = expand_lists(parse(text), self._listings, data)
            if not read.names <= self._space.by_name.keys():
                return False
            dimensions.unit_of(read, self._units)
        except SpecError:
            return False
        wanted = form(syntax.map_nodes(node, self._plain))
        found = read.resolve_units(units.factor).node
        return form(found) == wanted and syntax.map_nodes(found, self._plain) == found


_NEUTRAL: Mapping[str, int | None] = {"sum": 0, "product": 1, "min": None, "max": None}
"""Second argument that keeps a one-argument call's value; ``None`` is the argument itself."""


def _alternatives(node: syntax.Listed) -> syntax.Node:
    """Return a table of allowed combinations as a formula in disjunctive normal form.

    Each table row is a conjunction of equalities; a table of forbidden ones is negated.

    Raises:
        SpecError: the table has blank cells.
    """
    if any(value is None for row in node.rows for value in row):
        raise SpecError("a table with blank cells cannot be part of another rule")
    rows = tuple(_row(node.names, row) for row in node.rows)
    either = rows[0] if len(rows) == 1 else syntax.Logic("or", rows)
    return syntax.Unary("not", either) if node.negated else either


def _row(names: tuple[syntax.Name, ...], row: tuple[Value | None, ...]) -> syntax.Node:
    same = tuple(
        syntax.Compare(("==",), (name, literal(value)))
        for name, value in zip(names, row, strict=True)
        if value is not None
    )
    return same[0] if len(same) == 1 else syntax.Logic("and", same)
