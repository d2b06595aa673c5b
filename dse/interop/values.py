"""Another tool's values as ours: which exist, which are one, how many there may be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dse.core.parameter import Choice, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError

MAX_VALUES = 100_000
"""A parameter has at most so many values."""

NOTHING = "none"
"""The word that stands for another tool's null."""

_LARGEST = 1e300
"""No number of another tool is as large as this."""

_NEAR = 1e-9
"""Two numbers this close, relative to the larger, are one: 0.1 + 0.2 is 0.3."""


def check_value(value: Any, owner: str) -> Value:
    """Their value as one of ours; null becomes the word ``none``.

    Raises:
        SpecError: it is a list, an object, or no finite number.
    """
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if value is None:
        return NOTHING
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and abs(value) < _LARGEST:  # false for what is no number
        return value
    shown = json.dumps(value, default=str)[:60]
    raise SpecError(f"{owner} cannot be {shown}", hint="a value is a number, a word, true or false")


def number_in(item: Mapping[str, Any], key: str, owner: str) -> int | float:
    """The number that the item has under the key.

    Raises:
        SpecError: there is none.
    """
    value = item.get(key)
    if value is not None:
        found = check_value(value, f"{key!r} of {owner}")
        if numbers_only([found]):
            return cast("int | float", found)
    raise SpecError(f"{key!r} of {owner} is {value!r}, and no number")


def values_in(
    item: Mapping[str, Any], key: str, owner: str, warnings: list[str]
) -> tuple[Value, ...]:
    """The values that the item lists under the key; true and false in our order.

    Raises:
        SpecError: there are none, too many, or one twice.
    """
    found = item.get(key)
    if not isinstance(found, list) or not found:
        raise SpecError(f"{owner} has no {key!r}, or an empty one")
    check_count(len(found), owner)
    if None in found:
        warnings.append(f"{owner}: null is the word {NOTHING!r} here")
    values = uniform([check_value(value, owner) for value in found])
    if len({(type(value), value) for value in values}) < len(values):
        raise SpecError(f"a value of {owner} stands twice in {key!r}")
    return (False, True) if set(map(type, values)) == {bool} and len(values) == 2 else values


def value_of(parameter: Parameter, value: Any) -> Value:
    """The value of the parameter that theirs means: the nearest one, if it is near enough.

    Raises:
        SpecError: it has none.
    """
    plain = check_value(value, parameter.name)
    if isinstance(parameter, Real):
        if _is_number(plain):
            inside = min(max(float(plain), parameter.low), parameter.high)
            if near(inside, float(plain)):
                return inside
    else:
        found = next((mine for mine in parameter.values if _same(mine, plain)), None)
        if found is not None:
            return found
    raise SpecError(f"{parameter.name} cannot be {plain!r}", hint=_domain(parameter))


def first(parameter: Parameter) -> Value:
    """The parameter's first value."""
    return parameter.low if isinstance(parameter, Real) else parameter.values[0]


def near(left: float, right: float) -> bool:
    """True if the two numbers differ by rounding only."""
    return abs(left - right) <= _NEAR * max(abs(left), abs(right), 1e-300)


def numbers_only(values: Sequence[Value]) -> bool:
    """True if there is no word and no truth among the values."""
    return all(_is_number(value) for value in values)


def uniform(values: Sequence[Value]) -> tuple[Value, ...]:
    """The values; numbers of one kind, so that one value is one key."""
    if numbers_only(values) and any(isinstance(value, float) for value in values):
        return tuple(float(value) for value in values)
    return tuple(values)


def step_values(low: float, high: float, step: float, owner: str) -> tuple[int | float, ...]:
    """Return the numbers from ``low`` to ``high`` in increments of ``step``.

    They are rounded to 12 significant digits, to remove binary rounding errors.

    Raises:
        SpecError: there are none, or too many.
    """
    if step <= 0 or high < low:
        raise SpecError(f"{owner} goes from {low} to {high} in steps of {step}: no value")
    count = math.floor((high - low) / step + 1e-9) + 1
    check_count(count, owner)
    values = [float(f"{low + place * step:.12g}") for place in range(count)]
    if all(value.is_integer() for value in values):
        return tuple(int(value) for value in values)
    return tuple(values)


def check_count(count: int, owner: str) -> None:
    """Nothing, if so many values are not too many. Raises SpecError otherwise."""
    if count > MAX_VALUES:
        raise SpecError(
            f"{owner} has {count:,} values; at most {MAX_VALUES:,} are read",
            hint="make its range smaller, or make it a float",
        )


def _same(mine: Value, theirs: Value) -> bool:
    if isinstance(mine, bool | str) or isinstance(theirs, bool | str):
        return type(mine) is type(theirs) and mine == theirs
    return near(mine, theirs)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _domain(parameter: Parameter) -> str:
    if isinstance(parameter, Real):
        return f"legal: {parameter.low} .. {parameter.high}"
    shown = [str(value) for value in parameter.values[:12]]
    more = ", ..." if len(parameter.values) > len(shown) else ""
    kind = "one of" if isinstance(parameter, Choice) else "legal:"
    return f"{kind} {', '.join(shown)}{more}"
