"""Parts of one step of a recipe: an operator's name, and numbers."""

from __future__ import annotations

import math

from dse.errors import SpecError

_PAIR = 2


def parts(step: str) -> tuple[str, str]:
    """Return the operator's name and its argument."""
    name, _, argument = step.strip().partition(" ")
    return name, argument.strip()


def pair(text: str, example: str, mark: str = "/") -> tuple[str, str]:
    """Return the texts on both sides of a mark.

    Raises:
        SpecError: there are not two sides.
    """
    sides = text.split(mark)
    if len(sides) != _PAIR:
        raise SpecError(f"{text!r} is not of the form {example!r}")
    return sides[0], sides[1]


def whole(text: str) -> int:
    """A whole number.

    Raises:
        SpecError: it is none.
    """
    if not text.strip().isdecimal():
        raise SpecError(f"{text!r} is no whole number")
    return int(text)


def share(text: str) -> float:
    """A share of the weights.

    Raises:
        SpecError: it is none, or not from 0 to 1.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise SpecError(f"{text!r} is no share of the weights", hint="0 to 1")
    return found
