"""Checks that an evaluator's inputs have valid values, made before a study is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import TypeVar

from dse.core.design import base
from dse.core.values import Value
from dse.errors import DseError, SpecError, nearest
from dse_evaluators.formats.names import format_of

Row = TypeVar("Row")

Check = Callable[[str, Value], None]
"""Function of an input's name and value that raises SpecError if the value is invalid."""


def check_readings(
    values: Mapping[str, Sequence[Value]],
    checks: Mapping[str, Check],
    lists: Mapping[str, int] | None = None,
) -> None:
    """Check every value that a design space allows for the inputs of an evaluator.

    Args:
        values: possible values by input; elements of a list have their own names, as ``ffn[0]``.
        checks: the check of each input's values; inputs without a check can have any value.
        lists: the inputs that may be lists, with the length that the list must have.

    Raises:
        SpecError: a value is invalid, an input is a list but may not be, or a list has another
            length.
    """
    for name in dict.fromkeys(base(each) for each in values if base(each) != each):
        wanted = (lists or {}).get(name)
        found = sum(base(each) == name for each in values)
        if wanted is None:
            raise SpecError(f"{name!r} is a list of {found}", hint="one value, without 'each'")
        if found != wanted:
            raise SpecError(f"{name!r} has {found} entries", hint=f"each: {wanted}")
    for name, options in values.items():
        check = checks.get(base(name), _anything)
        for value in options:
            try:
                check(name, value)
            except DseError as error:
                raise SpecError(error.problem, hint=error.hint) from error


def word(*valid: Value) -> Check:
    """Return a function that checks whether an input's value is one of some words."""

    def check(name: str, value: Value) -> None:
        if value not in valid:
            hint = nearest(str(value), map(str, valid))
            raise SpecError(f"{name} cannot be {value!r}", hint=hint)

    return check


def look_up_row(name: str, value: Value, table: Mapping[str, Row]) -> Row:
    """Look up the value of an evaluator's option ``name`` in a table.

    Raises:
        SpecError: the table has no such key.
    """
    word(*table)(name, value)
    return table[str(value)]


def number(low: float, high: float, *, whole: bool = False, unit: str = "") -> Check:
    """Return a function that checks whether an input's value is a number in a closed range.

    The range is ``low`` to ``high``; with ``whole`` the value must be an integer.
    """

    def check(name: str, value: Value) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = is_number and low <= float(value) <= high
        if not fits or (whole and float(value) != int(value)):
            kind = "a whole number" if whole else "a number"
            ends = f"from {low:.9g} to {high:.9g} {unit}" if isfinite(high - low) else f"in {unit}"
            hint = f"{kind} {ends}".strip().removesuffix(" in")
            raise SpecError(f"{name} cannot be {value!r}", hint=hint)

    return check


def one_among(checks: Mapping[str, Check]) -> Check:
    """Return a function that checks a value by the check of its name; other names are invalid."""

    def check(name: str, value: Value) -> None:
        if name not in checks:
            raise SpecError(f"there is no knob {name!r}", hint=nearest(name, checks))
        checks[name](name, value)

    return check


def flag(name: str, value: Value) -> None:
    """Raise an error unless an input's value is true or false."""
    if value not in (True, False):
        raise SpecError(f"{name} cannot be {value!r}", hint="true or false")


def check_with_lookup(find: Callable[[str], object], *others: str) -> Check:
    """Return a function that checks whether ``find`` accepts a value, or it is in ``others``.

    The function can be pickled if ``find`` can.

    ``find`` raises a DseError for invalid texts, whose message users see.
    """
    return partial(_check_found, find, others)


def _check_found(
    find: Callable[[str], object],
    others: Sequence[str],
    name: str,  # noqa: ARG001 - find's message names the input
    value: Value,
) -> None:
    if value not in others:
        find(str(value))


def number_format(*others: str) -> Check:
    """Return a function that checks for the name of a number format, or one of ``others``."""
    return check_with_lookup(format_of, *others)


def _anything(name: str, value: Value) -> None:
    """Accept any value of an input; used for inputs without a check."""
