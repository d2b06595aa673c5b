"""Units, based on pint: parsing, conversion, and formatting of quantities.

Internally, every number is in the coherent unit of its dimension (seconds, joules, bytes, dollars
...). The units are defined in ``units.txt``.
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dse.errors import SpecError

if TYPE_CHECKING:
    import pint

_POWER = re.compile(r"(?<=[A-Za-zµΩ])\^?(-?\d)(?!\w)")
_QUANTITY = re.compile(r"^\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)$")
_RUNAWAY = re.compile(r"\d{3}|[\d)]\s*(\*\*|\^)")
"""Pattern of powers of numbers or of powers: pint would take minutes to reject ``9**9**9``."""

_RATE_PER_TIME = re.compile(r"FLOP/s(?=\s*/\s*(?:[mun]?s|min|h)\b)")
"""Pattern of a rate per time: users who write ``TFLOPS/s`` mean operations per second."""

_MONEY = re.compile(r"\b(USD|dollars?)\b|\$")

_LONGEST = 60
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
WRITTEN = (
    *_BINARY,
    *("kB", "MB", "GB", "TB", "s", "ms", "us", "ns", "min", "h", "Hz", "kHz", "MHz", "GHz"),
    *("W", "mW", "kW", "J", "mJ", "uJ", "nJ", "pJ", "V", "mV", "mm2", "um2", "FLOP", "TFLOP"),
)
"""Frequent units, for hints to users who write them with the wrong capitalization."""
_OTHERWISE = {
    **dict.fromkeys(("sec", "secs"), "s"),
    **dict.fromkeys(("msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("usec", "usecs", "micros"), "us"),
    **dict.fromkeys(("nsec", "nsecs", "nanos"), "ns"),
    **dict.fromkeys(("mins",), "min"),
    **dict.fromkeys(("hr", "hrs"), "h"),
    **{f"{prefix}flops".lower(): f"{prefix}FLOP/s" for prefix in ("", *"kMGTPE")},
}
"""Frequent misspellings of units, in lower case, and the unit that each means."""
_DERIVED = ("J", "W", "V", "Hz")
"""Coherent units that are shown by their own name and not in kilograms, metres and seconds."""


@cache
def registry() -> pint.UnitRegistry[float]:
    """Return the shared unit registry, created at the first call."""
    import pint

    return pint.UnitRegistry(str(Path(__file__).with_name("units.txt")))


@cache
def unit(text: str) -> pint.Unit:
    """Parse the name of a unit; the empty text is the dimensionless unit.

    Raises:
        SpecError: there is no such unit.
    """
    try:
        if len(text) > _LONGEST or _RUNAWAY.search(text):
            raise ValueError(text)
        return registry().parse_units(_words(text))
    except Exception as error:
        raise SpecError(
            f"there is no unit {text[:60]!r}",
            hint=_meant(text) or "units are written like 64 KiB, 1.2 GHz, 20 mm2, 3.35 TB/s",
        ) from error


def _meant(text: str) -> str:
    """Return a hint with the unit for which a text is likely a misspelling; empty if unknown."""
    if len(text) > _LONGEST or _RUNAWAY.search(text):
        return ""
    known = {written.lower(): written for written in WRITTEN} | _OTHERWISE

    def renamed(word: re.Match[str]) -> str:
        new = known.get(word[0].lower(), word[0])
        below = word.string[: word.start()].rstrip().endswith("/")
        return f"({new})" if "/" in new and below else new

    mended = _RATE_PER_TIME.sub("FLOP", re.sub(r"[^\W\d_]+", renamed, text.strip("[]() ")))
    try:
        registry().parse_units(_words(mended))
    except Exception:  # noqa: BLE001 - pint raises many kinds of exceptions for invalid units
        return ""
    return f"did you mean {mended!r}?" if mended else ""


def _words(text: str) -> str:
    """Return a unit's text in the syntax of the library pint."""
    return _POWER.sub(r"**\1", text.replace("$", "dollar").replace("%", "percent"))


@cache
def factor(text: str) -> float:
    """Return the factor from a unit to the coherent unit of its dimension: 1e6 for ``MHz``.

    Raises:
        SpecError: there is no such unit, or its size is beyond the range of floats.
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
    """Return whether a number in one unit can be converted to the other.

    Raises:
        SpecError: there is no such unit.
    """
    return bool(unit(left).dimensionality == unit(right).dimensionality)


def converted(value: float, source: str, target: str) -> float:
    """Convert a number from the unit ``source`` to the unit ``target``.

    Raises:
        SpecError: the units differ in dimension, or there is no such unit.
    """
    if source == target:
        return value
    if not same_dimension(source, target):
        raise SpecError(f"{source or 'a bare number'} is no {target or 'bare number'}")
    return value * factor(source) / factor(target)


_CALENDAR = frozenset({"min", "h", "hour", "hours", "d", "day", "days", "week", "weeks", "yr"})
"""Units of time that take no prefix."""


def _money(value: float, text: str) -> str:
    """Format dollars: a small amount without a prefix, millions as ``M$``."""
    if text == "$" and abs(value) >= 1e6:
        return f"{_digits(value / 1e6)} M$"
    return f"{_digits(value)} {text}"


def _digits(value: float) -> str:
    """Format a number with four significant digits, or all digits before the decimal point."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


@cache
def coherent(text: str) -> str:
    """Return the coherent (SI) unit of the same dimension: ``Hz`` for ``MHz``."""
    for name in _DERIVED:
        if same_dimension(text, name):
            return name
    return short((1.0 * unit(text)).to_root_units().units)


def short(of: object) -> str:
    """Format a pint unit as a user would write it: ``J*s``, ``mm^2``, ``B/s``."""
    text = format(of, "~C")
    return "" if text == "dimensionless" else text.replace("**", "^").replace("USD", "$")


def quantity(text: str) -> tuple[float, str] | None:
    """Split a text such as ``64 KiB`` into number and unit; ``None`` if it has another form."""
    found = _QUANTITY.match(text) if len(text) <= _LONGEST else None
    if found is None or not found.group(2):
        return None
    return float(found.group(1).replace("_", "")), found.group(2).strip()


def shown(value: float, text: str) -> str:
    """Format a number with a readable unit prefix: ``64 KiB``, ``1.2 GHz``, ``3.1 mJ``.

    Args:
        value: the number, in the unit ``text``.
        text: the name of the unit; empty for none.
    """
    if text == "B" and value >= 1024 and value % 1024 == 0:
        power = min(int(math.log2(value)) // 10, len(_BINARY) - 1)
        return f"{value / 1024**power:g} {_BINARY[power]}"
    if text in _BINARY[1:] and value and math.isfinite(value):
        size = value * 1024 ** _BINARY.index(text)
        power = min(max(math.frexp(abs(size))[1] - 1, 0) // 10, len(_BINARY) - 1)
        return f"{size / 1024**power:.4g} {_BINARY[power]}"
    if not text or value == 0 or not math.isfinite(value):
        return f"{value:.4g} {text}".rstrip()
    if _MONEY.search(text):  # no prefixes such as nanodollars
        return _money(value, _MONEY.sub("$", text))
    if text in _CALENDAR:  # no kilodays
        return f"{_digits(value)} {text}"
    if re.fullmatch(r"[A-Za-zµΩ]+(/[A-Za-z]+)?", text) and not same_dimension(text, ""):
        compact = (value * unit(text)).to_compact()
        return f"{compact.magnitude:.4g} {short(compact.units)}"
    return f"{value:.4g} {text}"
