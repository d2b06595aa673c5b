"""Values of the members of a compound parameter that ``fix`` sets with one list."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.compound_parameters import (
    TOLERANCE,
    Each,
    Partition,
    Permutation,
    Simplex,
    Structured,
    Subset,
    member,
)
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.schema.models import Scalar


def values_of(one: Structured, values: Sequence[Scalar]) -> dict[str, Scalar]:
    """Convert the list that fixes a compound parameter to a value for each member, by full name.

    Args:
        one: the compound parameter.
        values: the chosen items of a subset; otherwise one value per member, in order.

    Raises:
        SpecError: the number of values is wrong, one is not an item or is repeated, shares do not
            add up to one, or the parameter is a partition.
    """
    match one:
        case Subset():
            return _flag_items(one, values)
        case Partition():
            raise SpecError(
                f"{one.name} is several cuts",
                hint=f"fix its members, such as {one.name}[0]",
            )
        case Permutation():
            _check_items(one.name, one.items, values)
        case Simplex():
            _check_shares(values)
        case Each():
            pass
    if len(values) != len(one.members):
        raise SpecError(f"{one.name} has {len(one.members)} values, and this gives {len(values)}")
    return {own.name: value for own, value in zip(one.members, values, strict=True)}


def _flag_items(one: Subset, values: Sequence[Scalar]) -> dict[str, Scalar]:
    _check_items(one.name, one.items, values)
    return {member(one.name, item): item in values for item in one.items}


def _check_shares(values: Sequence[Scalar]) -> None:
    known = [value for value in values if not isinstance(value, str)]
    if len(known) == len(values) and abs(sum(known) - 1) > TOLERANCE:
        raise SpecError(f"the shares add up to {sum(known):g}, not to one")


def _check_items(name: str, items: Sequence[Value], values: Sequence[Scalar]) -> None:
    for place, value in enumerate(values):
        if value not in items:
            hint = nearest(str(value), map(str, items))
            raise SpecError(f"{name} has no item {value!r}", hint=hint)
        if value in values[:place]:
            raise SpecError(f"the item {value!r} appears twice")
