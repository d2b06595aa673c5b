"""Expansion of list functions (``sum``, ``count``, ``sizes`` ...) into formulas over the items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.items import Items, Operand, by_item, literal
from dse.errors import SpecError

_EMPTY: Mapping[str, syntax.Node] = {
    "sum": syntax.Number(0),
    "count": syntax.Number(0),
    "product": syntax.Number(1),
    "all_different": syntax.Truth(value=True),
    "all": syntax.Truth(value=True),
    "any": syntax.Truth(value=False),
}
"""Value of each function for an empty list; ``min`` and ``max`` have no such value."""


def fold(function: str, arguments: Sequence[Operand]) -> syntax.Node:
    """Return the formula that reduces lists by a function such as ``sum``, ``max`` or ``all``.

    Raises:
        SpecError: the only argument is not a list, or the lists are empty and the function has
            no value for an empty list.
    """
    items = [
        node
        for argument in arguments
        for node in (argument.all if isinstance(argument, Items) else (argument,))
    ]
    if len(arguments) == 1 and not isinstance(arguments[0], Items):
        raise SpecError(f"{function} was given one value", hint="give it a list, or several values")
    if not items:
        if function not in _EMPTY:
            raise SpecError(f"an empty list has no {function}")
        return _EMPTY[function]
    if function in ("all", "any"):
        return _combine_items("and" if function == "all" else "or", items)
    return fold_constant(syntax.Call(function, tuple(items)))


def count(arguments: Sequence[Operand]) -> syntax.Node:
    """Return a formula that counts the true items, or the items equal to the second argument.

    Raises:
        SpecError: no list is given, or its items are not true or false.
    """
    found = arguments[0]
    if len(arguments) == 2:
        found = by_item(arguments, lambda parts: syntax.Compare(("==",), tuple(parts)))
    if not isinstance(found, Items):
        raise SpecError("count was given no list", hint="count(bits == 4), or count(bits, 4)")
    truths = found.all if found.flags else [_truth(node, found.name) for node in found.all]
    return fold("sum", [replace(found, nodes=tuple(truths), column=None)])


def length(argument: Operand) -> syntax.Node:
    """Return the number of items of a list of parameters.

    Raises:
        SpecError: the argument is not a list, or is a subset: use ``count`` for its size.
    """
    if not isinstance(argument, Items):
        raise SpecError("len was given no list")
    if argument.flags:
        name = argument.name
        raise SpecError(
            f"len({name}) is not defined for a subset",
            hint=f"count({name}) is the number of its {len(argument)} items that are selected",
        )
    return syntax.Number(len(argument))


def sizes(argument: Operand) -> Items:
    """Return formulas for the lengths of all segments of a partition of a chain.

    Raises:
        SpecError: the argument is not a partition into a fixed number of parts.
    """
    if not isinstance(argument, Items) or argument.sizes is None:
        given = f", and {argument.name} is not one" if isinstance(argument, Items) else ""
        raise SpecError(
            f"sizes needs a partition into a fixed number of parts{given}", hint="'parts: 4'"
        )
    name = f"sizes({argument.name})"
    keys = tuple(range(len(argument.sizes)))
    return Items(name=name, owner=name, keys=keys, nodes=argument.sizes)


def sums(arguments: Sequence[Operand]) -> Items:
    """Return formulas for the sums of a column over each segment of a partition of a chain.

    Args:
        arguments: a partition of a chain, and a list with one constant number per link.

    Raises:
        SpecError: the first argument is not a partition into a fixed number of parts, or the
            second is not a list with one number per link.
    """
    parts, values = arguments
    part_sizes = sizes(parts)
    assert isinstance(parts, Items)
    figures = [fold_constant(node) for node in values.all] if isinstance(values, Items) else []
    if not figures or not all(isinstance(figure, syntax.Number) for figure in figures):
        raise SpecError("sums needs a list of numbers", hint="sums(stages, layers.weights)")
    numbers = [figure for figure in figures if isinstance(figure, syntax.Number)]
    before = [0, *accumulate(figure.value for figure in numbers)]
    last = part_sizes.nodes[-1]
    end = last.left if isinstance(last, syntax.Binary) else last
    if not isinstance(end, syntax.Number) or end.value != len(numbers):
        size = end.value if isinstance(end, syntax.Number) else "?"
        raise SpecError(f"{parts.name} has {size} links, but {len(numbers)} numbers were given")
    unit = numbers[0].unit
    entries = tuple(enumerate(before))
    ends: list[syntax.Node] = [
        syntax.Lookup(cut, entries, unit, f"the figures before {parts.name}[{place}]")
        for place, cut in enumerate(parts.nodes)
    ]
    ends.append(syntax.Number(before[-1], unit))
    inner = [syntax.Binary("-", right, left) for left, right in pairwise(ends)]
    name = f"sums({parts.name})"
    return Items(name=name, owner=name, keys=part_sizes.keys, nodes=(ends[0], *inner))


def within(arguments: Sequence[Operand]) -> Operand:
    """Return the condition of ``x in list``: an item equals x or, in a subset, x is selected.

    Raises:
        SpecError: the second argument is not a list, or the subset has no such item.
    """
    item, found = arguments
    if not isinstance(found, Items):
        raise SpecError("the expression after 'in' is not a list", hint="x in [a, b] or in a_list")
    if found.flags:
        return by_item([item], lambda parts: _build_membership(found, fold_constant(parts[0])))
    return by_item([item], lambda parts: syntax.Member(parts[0], found.all))


def fold_constant(node: syntax.Node) -> syntax.Node:
    """Return the number that a constant formula evaluates to, else the formula itself."""
    unit = _settled_unit(node)
    if unit is None:
        return node
    result = Expression("", node).values({}, 1)
    value = result.values[0].item()
    if result.absent is not None or (isinstance(value, float) and not math.isfinite(value)):
        return node
    return literal(value, unit)


def _settled_unit(node: syntax.Node) -> str | None:
    """Return the unit of a constant formula.

    It is ``None`` if the formula is not constant, or if its operation does not preserve the units
    of its numbers.
    """
    leaves = _leaves(node)
    if not syntax.children(node) or not all(
        isinstance(leaf, syntax.Number | syntax.Truth) for leaf in leaves
    ):
        return None
    units = {leaf.unit for leaf in leaves if isinstance(leaf, syntax.Number)}
    if units <= {""}:
        return ""
    flat = len(leaves) == len(syntax.children(node))
    same = isinstance(node, syntax.Call) and node.function in ("sum", "min", "max")
    return units.pop() if flat and same and len(units) == 1 else None


def _leaves(node: syntax.Node) -> list[syntax.Node]:
    own = syntax.children(node)
    return [leaf for child in own for leaf in _leaves(child)] if own else [node]


def _combine_items(operator: str, items: Sequence[syntax.Node]) -> syntax.Node:
    return items[0] if len(items) == 1 else syntax.Logic(operator, tuple(items))


def _truth(node: syntax.Node, name: str) -> syntax.Node:
    """Return a list's item as a condition; a numeric parameter is true where it is not 0."""
    if isinstance(node, syntax.Name):
        return syntax.Compare(("!=",), (node, syntax.Number(0)))
    if not syntax.is_truth(node):
        raise SpecError(
            f"count needs items that are true or false, and those of {name} are not",
            hint="count(bits == 4), or count(bits, 4)",
        )
    return node


def _build_membership(found: Items, item: syntax.Node) -> syntax.Node:
    """Return the condition that an item is selected in a subset parameter."""
    if isinstance(item, syntax.Number | syntax.Text | syntax.Truth):
        return found.item(found.place(item.value))
    pairs = zip(found.keys, found.all, strict=True)
    either = [
        syntax.Logic("and", (syntax.Compare(("==",), (item, literal(key))), node))
        for key, node in pairs
    ]
    return _combine_items("or", either) if either else syntax.Truth(value=False)
