"""Words of a compression recipe: names, arguments and numbers."""

from __future__ import annotations

import math

from dse.errors import SpecError

_PAIR = 2


def parts(step: str) -> tuple[str, str]:
    """Split one step of a recipe into the operator's name and its argument."""
    name, _, argument = step.strip().partition(" ")
    return name, argument.strip()


def pair(text: str, example: str, mark: str = "/") -> tuple[str, str]:
    """Split a recipe's argument at a separator, and return both halves.

    Raises:
        SpecError: the text does not contain the separator exactly once.
    """
    sides = text.split(mark)
    if len(sides) != _PAIR:
        raise SpecError(f"{text!r} is not of the form {example!r}")
    return sides[0], sides[1]


def whole(text: str) -> int:
    """Parse a number in a recipe as a non-negative integer.

    Raises:
        SpecError: the text is not a non-negative integer.
    """
    if not text.strip().isdecimal():
        raise SpecError(f"{text!r} is no whole number")
    return int(text)


def share(text: str) -> float:
    """Parse a text in a recipe as a fraction of the weights, 0 to 1.

    Raises:
        SpecError: the text is not a number from 0 to 1.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise SpecError(f"{text!r} is not a fraction of the weights", hint="0 to 1")
    return found
