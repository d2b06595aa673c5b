"""Options that are amounts: a number in the unit that is asked for, or a text with its own."""

from __future__ import annotations

import math

from dse.errors import SpecError
from dse.units.units import converted, quantity


def amount(name: str, told: float | str, unit: str, *, least: float = 0.0) -> float:
    """Return the value of an option in ``unit``.

    Raises:
        SpecError: it is no number, in a unit that does not fit, or less than ``least``.
    """
    if isinstance(told, bool):
        raise SpecError(f"{name} is {told!r}, no number")
    parsed = quantity(told) if isinstance(told, str) else (told, unit)
    if parsed is None:
        raise SpecError(f"{name} is {told!r}, no number", hint=_mend(told, unit))
    value = converted(parsed[0], parsed[1] or unit, unit)
    if not (math.isfinite(value) and value >= least):
        raise SpecError(f"{name} is {told!r}", hint=f"{least:g} {unit} or more".replace("  ", " "))
    return value


def _mend(told: float | str, unit: str) -> str:
    """The number that a text in quotes was to be, or an example."""
    try:
        value = float(told)
    except ValueError:
        return f"such as 2 {unit}" if unit else "a number, such as 2.5 or 2e12"
    return f"without quotes: {value:.12g}{f' {unit}' if unit else ''}"
