"""Expansion of the parameter lists and data tables in formulas of evaluators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from dse.core.expressions.list_rules import Listing, Table
from dse.core.expressions.syntax import Name, Node, map_nodes
from dse.core.space import DesignSpace
from dse.protocols import Evaluator, ExpandsFormulas
from dse.schema.study.fixed_inputs import FixedInputs


def expand_formulas(
    evaluator: Evaluator, bind: Mapping[str, str], known: Collection[str], space: DesignSpace
) -> Evaluator:
    """Return the evaluator with list members and table lookups in its formulas expanded.

    A name in a formula is matched with a list or table of the space as an input is with a
    parameter: by ``bind`` (lists only), by its full name, or as the last part of only one full
    name. Evaluators without formulas are returned unchanged.

    Raises:
        SpecErrors: a formula uses a list or a table incorrectly.
    """
    if isinstance(evaluator, FixedInputs):
        return FixedInputs(
            expand_formulas(evaluator.evaluator, bind, known, space), evaluator.values
        )
    if not isinstance(evaluator, ExpandsFormulas) or not evaluator.formulas:
        return evaluator
    names = frozenset[str]().union(*(one.names for one in evaluator.formulas.values()))
    lists: dict[str, Listing] = {}
    data: dict[str, Table] = {}
    for name in sorted(names - set(known)):
        full = _full(bind.get(name, name), space.lists)
        table = _table(name, space.data)
        if full is not None:
            lists[name] = _rename_members(space.lists[full].listing, full, name)
        elif table is not None:
            data[table[0]] = space.data[table[1]]
    return evaluator.over(lists, data)


def _full(name: str, names: Iterable[str]) -> str | None:
    """Return the full name equal to a name, or the only full name that ends with it.

    It is ``None`` if there is no such name.
    """
    found = [one for one in names if one == name] or [
        one for one in names if one.endswith(f".{name}")
    ]
    return found[0] if len(found) == 1 else None


def _table(name: str, data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the data table that a name in a formula refers to, or ``None``.

    The name may be ``table`` or ``table.column``; the result is the table's name in the formula and
    its full name in the space.
    """
    for own in (name, name.rpartition(".")[0]):
        full = _full(own, data) if own else None
        if full is not None:
            return own, full
    return None


def _rename_members(listing: Listing, full: str, own: str) -> Listing:
    """Return the list with ``own`` in place of its full name in the names of its members."""

    def changed(node: Node) -> Node:
        if isinstance(node, Name) and node.name.startswith((f"{full}[", f"{full}.")):
            return Name(own + node.name.removeprefix(full))
        return node

    nodes = tuple(map_nodes(node, changed) for node in listing.nodes)
    sizes = None if listing.sizes is None else tuple(map_nodes(n, changed) for n in listing.sizes)
    return replace(listing, nodes=nodes, sizes=sizes)
