"""Formatting of numbers with units in a short form that parses to exactly the same number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dse.core.expressions.expression import fold_unit
from dse.errors import SpecError
from dse.schema.space.parameters.domains import Number, amount
from dse.units import units

_BINARY = (("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10))
_DECIMAL = (
    ("P", 15),
    ("T", 12),
    ("G", 9),
    ("M", 6),
    ("k", 3),
    ("", 0),
    ("m", -3),
    ("u", -6),
    ("n", -9),
    ("p", -12),
)
_SIMPLE = re.compile(r"(?!kg)[A-Za-zΩ]+(/[A-Za-z]+)?")
"""Units that take a decimal prefix."""


def spell_number(value: Number, unit: str) -> str:
    """Return the number in the unit that gives the shortest text: ``64 KiB`` for 65536 bytes."""
    if not unit:
        return f"{value!r}"
    fitting = [text for text in _candidates(value, unit) if _reads_as(text, value, unit)]
    return min(fitting, key=len, default=f"{value!r} {literal_unit(unit)}")


def spelled_all(values: Sequence[Number], unit: str) -> list[str] | None:
    """Return each number as a string with a unit, such as ``64 KiB``; ``None`` if too long.

    It is ``None`` if one of the strings would be longer than the plain number followed by ``unit``.
    """
    texts = [spell_number(value, unit) for value in values]
    short = all(
        len(text) <= len(repr(v)) + len(unit) + 1 for v, text in zip(values, texts, strict=True)
    )
    return texts if short else None


def literal_unit(unit: str) -> str:
    """Return a coherent unit in the notation of a literal in a formula: ``J s`` for ``J*s``.

    Raises:
        SpecError: the unit has a fractional power.
    """
    if re.search(r"\^-?\d*\.", unit):
        raise SpecError(f"the unit {unit} has a fractional power, which a literal cannot express")
    above, *below = unit.split("/")
    if not below or (above != "1" and len(below) == 1 and "*" not in unit):
        return unit.replace("*", " ")
    words = [] if above == "1" else above.split("*")
    return " ".join([*words, *(_inverse(word) for word in below)])


def _inverse(word: str) -> str:
    name, _, power = word.partition("^")
    return f"{name}^-{power or 1}"


def _candidates(value: Number, unit: str) -> list[str]:
    found = []
    if unit == "B" and isinstance(value, int):
        found = [
            f"{value >> bits} {name}" for name, bits in _BINARY if value and not value % 2**bits
        ]
    if _SIMPLE.fullmatch(unit) and unit != "$":
        fitting = [(name, power) for name, power in _DECIMAL if abs(value) >= 10.0**power]
        found += [_scale_text(value, power) + f" {name}{unit}" for name, power in fitting[:1]]
    return found


def _scale_text(value: Number, power: int) -> str:
    scaled = value / 10**power if power >= 0 else value * 10**-power
    return f"{scaled:.15g}"


def _reads_as(text: str, value: Number, unit: str) -> bool:
    """Return whether domains and formulas both parse the text as exactly this value and unit."""
    found = units.quantity(text)
    if found is None:
        return False
    number, stated_unit = found
    try:
        parsed = amount(text)
        in_formula = fold_unit(number, units.factor(stated_unit))
    except SpecError:
        return False
    return parsed.value == value == in_formula and parsed.unit == unit
