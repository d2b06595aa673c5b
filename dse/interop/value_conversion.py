"""Conversion and validation of values in another tool's format: types, equality and count."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dse.core.parameter import Choice, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError

MAX_VALUES = 100_000
"""Largest number of values of an imported parameter."""

NOTHING = "none"
"""Text that represents another tool's null."""

_LARGEST = 1e300
"""Magnitude from which on a number is refused."""

_NEAR = 1e-9
"""Relative tolerance up to which two numbers are equal, such as 0.1 + 0.2 and 0.3."""


def check_value(value: Any, owner: str) -> Value:
    """Convert a value of another tool to a parameter value; null becomes the string ``none``.

    Raises:
        SpecError: the value is a list, an object, or a number that is not finite.
    """
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if value is None:
        return NOTHING
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and abs(value) < _LARGEST:  # false for NaN
        return value
    shown = json.dumps(value, default=str)[:60]
    raise SpecError(f"{owner} cannot be {shown}", hint="a value is a number, a word, true or false")


def number_in(item: Mapping[str, Any], key: str, owner: str) -> int | float:
    """Return the number under a key of a JSON item.

    Raises:
        SpecError: there is no number.
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
    """Return the values in the list under a key of a JSON item; Booleans as (False, True).

    Raises:
        SpecError: there are no values, too many, or duplicates.
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
    """Return the value of the parameter that equals another tool's value up to rounding.

    Raises:
        SpecError: the parameter has no such value.
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
    """Return the parameter's first value, or the lower bound of a real parameter."""
    return parameter.low if isinstance(parameter, Real) else parameter.values[0]


def near(left: float, right: float) -> bool:
    """Return whether two numbers differ by rounding errors only."""
    return abs(left - right) <= _NEAR * max(abs(left), abs(right), 1e-300)


def numbers_only(values: Sequence[Value]) -> bool:
    """Return whether all values are numbers; Booleans are not."""
    return all(_is_number(value) for value in values)


def uniform(values: Sequence[Value]) -> tuple[Value, ...]:
    """Convert numbers to float if any of them is a float; other values are unchanged."""
    if numbers_only(values) and any(isinstance(value, float) for value in values):
        return tuple(float(value) for value in values)
    return tuple(values)


def step_values(low: float, high: float, step: float, owner: str) -> tuple[int | float, ...]:
    """Return the numbers from ``low`` to ``high`` in increments of ``step``.

    The numbers are rounded to 12 significant digits, to remove binary rounding errors.

    Raises:
        SpecError: the range has no value, or too many.
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
    """Raise SpecError if ``count`` exceeds :data:`MAX_VALUES`."""
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
