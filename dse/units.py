"""Units by pint: what a text of a unit means, which agree, and how a number is shown.

Inside, every number is in the coherent unit of its dimension (seconds, joules, bytes, dollars ...);
which units there are stands in ``units.txt``.
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import pint

from dse.errors import SpecError

_POWER = re.compile(r"(?<=[A-Za-zµΩ])\^?(-?\d)(?!\w)")
_QUANTITY = re.compile(r"^\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)$")
_RUNAWAY = re.compile(r"\d{3}|[\d)]\s*(\*\*|\^)")
"""A power of a number, or of a power: ``9**9**9`` is no unit, and would take minutes to refuse."""

_LONGEST = 60
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_DERIVED = ("J", "W", "V", "Hz")
"""Coherent units that are shown by their own name and not by kilograms, metres and seconds."""


@cache
def registry() -> pint.UnitRegistry[float]:
    """The one registry of units, made when first asked for."""
    return pint.UnitRegistry(str(Path(__file__).with_name("units.txt")))


@cache
def unit(text: str) -> pint.Unit:
    """The unit that a text names; the empty text is no unit.

    Raises:
        SpecError: there is no such unit.
    """
    words = _POWER.sub(r"**\1", text.replace("$", "dollar").replace("%", "percent"))
    try:
        if len(text) > _LONGEST or _RUNAWAY.search(text):
            raise ValueError(text)
        return registry().parse_units(words)
    except Exception as error:
        raise SpecError(
            f"there is no unit {text[:60]!r}",
            hint="units are written like 64 KiB, 1.2 GHz, 20 mm2, 3.35 TB/s",
        ) from error


@cache
def factor(text: str) -> float:
    """How many coherent units one of this unit is.

    Raises:
        SpecError: there is no such unit, or it is too large or too small for a number.
    """
    try:
        size = float((1.0 * unit(text)).to_root_units().magnitude)
    except OverflowError:
        size = math.inf
    if not 0 < size < math.inf:
        raise SpecError(f"the unit {text!r} is beyond what a number can hold")
    return size


@cache
def same_dimension(left: str, right: str) -> bool:
    """True if a number in one unit can be told in the other.

    Raises:
        SpecError: there is no such unit.
    """
    return bool(unit(left).dimensionality == unit(right).dimensionality)


def converted(value: float, source: str, target: str) -> float:
    """The number in another unit.

    Raises:
        SpecError: the units do not agree, or there is no such unit.
    """
    if source == target:
        return value
    if not same_dimension(source, target):
        raise SpecError(f"{source or 'a bare number'} is no {target or 'bare number'}")
    return value * factor(source) / factor(target)


@cache
def coherent(text: str) -> str:
    """The coherent unit of the same dimension, as people name it: ``Hz`` for ``MHz``."""
    for name in _DERIVED:
        if same_dimension(text, name):
            return name
    return short((1.0 * unit(text)).to_root_units().units)


def short(of: object) -> str:
    """A unit of pint as a user would write it: ``J*s``, ``mm^2``, ``B/s``."""
    text = format(of, "~C")
    return "" if text == "dimensionless" else text.replace("**", "^").replace("USD", "$")


def quantity(text: str) -> tuple[float, str] | None:
    """The number and the unit of a text such as ``64 KiB``; ``None`` if it is not of that form."""
    found = _QUANTITY.match(text) if len(text) <= _LONGEST else None
    if found is None or not found.group(2):
        return None
    return float(found.group(1).replace("_", "")), found.group(2).strip()


def shown(value: float, text: str) -> str:
    """A number with its unit for people: ``64 KiB``, ``1.2 GHz``, ``3.1 mJ``."""
    if text == "B" and value >= 1024 and value % 1024 == 0:
        power = min(int(math.log2(value)) // 10, len(_BINARY) - 1)
        return f"{value / 1024**power:g} {_BINARY[power]}"
    if not text or value == 0 or not math.isfinite(value):
        return f"{value:.4g} {text}".rstrip()
    if re.fullmatch(r"[A-Za-zµΩ]+(/[A-Za-z]+)?", text) and not same_dimension(text, ""):
        compact = (value * unit(text)).to_compact()
        return f"{compact.magnitude:.4g} {short(compact.units)}"
    return f"{value:.4g} {text}"
