"""Parsing of options with units: a number in the expected unit, or text with its own unit."""

from __future__ import annotations

import math

from dse.errors import SpecError
from dse.units.units import converted, quantity


def amount(name: str, given: float | str, unit: str, *, least: float = 0.0) -> float:
    """Convert the value of an evaluator's option ``name`` to a number in ``unit``.

    Raises:
        SpecError: it is not a number, has an incompatible unit, or is less than ``least``.
    """
    if isinstance(given, bool):
        raise SpecError(f"{name} is {given!r}, not a number")
    parsed = quantity(given) if isinstance(given, str) else (given, unit)
    if parsed is None:
        raise SpecError(f"{name} is {given!r}, not a number", hint=_mend(given, unit))
    value = converted(parsed[0], parsed[1] or unit, unit)
    if not (math.isfinite(value) and value >= least):
        raise SpecError(f"{name} is {given!r}", hint=f"{least:g} {unit} or more".replace("  ", " "))
    return value


def _mend(given: float | str, unit: str) -> str:
    """Return a hint on a wrong option: the number without quotes, or else an example value."""
    try:
        value = float(given)
    except ValueError:
        return f"such as 2 {unit}" if unit else "a number, such as 2.5 or 2e12"
    return f"without quotes: {value:.12g}{f' {unit}' if unit else ''}"
