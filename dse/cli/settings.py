"""Parser of ``--set parameter=value`` arguments into values of a space's parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dse.core.inspection.rule_conflicts import place_of
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import DesignError, SpecError, nearest
from dse.report.text.space_words import domain_text, entries, value_text
from dse.schema.space.parameters.domains import amount, literal


def settings(pairs: Sequence[str], space: DesignSpace) -> dict[str, Value]:
    """Return the values of ``parameter=value`` arguments, converted to the parameters' types.

    A list takes all its items at once, ``bits=[2,4,8]``, or one at a time, ``bits[0]=2``.

    Raises:
        SpecError: an argument is not a pair, names no parameter, or sets a parameter again.
        DesignError: a value is not in its parameter's domain.
    """
    found: dict[str, Value] = {}
    for pair in pairs:
        name, equals, text = (word.strip() for word in pair.partition("="))
        listed = space.lists.get(name)
        if not equals:
            raise SpecError(f"--set {pair!r}: expected parameter=value", hint="such as tp=8")
        if listed is None and name not in space.by_name:
            known = space.by_name if "[" in name else [entry.name for entry in entries(space)]
            raise SpecError(f"--set {pair!r}: there is no {name!r}", hint=nearest(name, known))
        if listed is None:
            values = {name: value_of(text, space.by_name[name], space)}
        else:
            values = _items(name, text, listed.listing, space)
        twice = next((one for one in values if one in found), None)
        if twice is not None:
            raise SpecError(f"--set {pair!r}: {twice} has a value already", hint="give it once")
        found |= values
    return found


def value_of(text: str, parameter: Parameter, space: DesignSpace) -> Value:
    """Parse a string as a value of a parameter.

    Raises:
        DesignError: the string is not one of the parameter's values.
    """
    if isinstance(parameter, Choice):
        return _parse_choice(text, parameter, space)
    try:
        number = amount(literal(text), parameter.unit).value
    except SpecError as error:
        raise _misfit(text, parameter, space, error.hint) from error
    found = _snap_to_value(number, parameter)
    if found is None:
        raise _misfit(text, parameter, space, _beside(number, parameter))
    return found


def _parse_choice(text: str, parameter: Choice, space: DesignSpace) -> Value:
    words = {value_text(value): value for value in parameter.values}
    for word in (text, text.strip("'\""), text.lower()):
        if word in words:
            return words[word]
    try:
        number = amount(literal(text), parameter.unit).value
    except SpecError:
        number = math.nan
    same = [v for v in parameter.values if v == number and not isinstance(v, bool)]
    if not same:
        raise _misfit(text, parameter, space, nearest(text, words))
    return same[0]


def _snap_to_value(number: float, parameter: Real | Integer | Ordinal) -> Value | None:
    """Return the parameter's legal value that equals a number up to rounding, else ``None``."""
    if isinstance(parameter, Real):
        return float(number) if number in parameter else None
    return next((v for v in parameter.values if math.isclose(v, number, rel_tol=1e-9)), None)


def _items(name: str, text: str, listing: Any, space: DesignSpace) -> dict[str, Value]:
    """Parse the values given for a list parameter; return them by member name.

    For a subset parameter, the members of the named items are true.
    """
    words = [word.strip() for word in text.strip("[] ").split(",") if word.strip()]
    members = [node.name for node in listing.nodes]
    keys = [str(key) for key in listing.keys]
    if listing.flags:
        wrong = next((word for word in words if word not in keys), None)
        if wrong is not None:
            raise SpecError(f"{name} has no item {wrong!r}", hint=nearest(wrong, keys))
        return {member: key in words for member, key in zip(members, keys, strict=True)}
    optional = sum(member in space.conditions for member in members)
    if not len(members) - optional <= len(words) <= len(members):
        problem = f"{name} has {len(members)} items, not {len(words)}"
        raise SpecError(problem, hint=f"write it like '{name}=[a, b, ...]', or {members[0]}=...")
    return {
        member: value_of(word, space.by_name[member], space)
        for member, word in zip(members, words, strict=False)
    }


def _beside(number: float, parameter: Real | Integer | Ordinal) -> str:
    """Return an error hint: the legal numbers nearest to an illegal one, and the domain."""
    legal = f"legal: {domain_text(parameter)}"
    if isinstance(parameter, Real):
        return legal
    near = sorted(parameter.values, key=lambda value: abs(value - number))[:2]
    words = [value_text(value, parameter.unit) for value in sorted(near)]
    return f"nearest: {' and '.join(words)}; {legal}"


def _misfit(text: str, parameter: Parameter, space: DesignSpace, hint: str) -> DesignError:
    where = place_of(space, parameter.name)
    return DesignError(f"{parameter.name} cannot be {text}", where=where, hint=hint)
