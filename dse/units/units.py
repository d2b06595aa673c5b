"""Units by pint: what a text of a unit means, which agree, and how a number is shown.

Inside, every number is in the coherent unit of its dimension (seconds, joules, bytes, dollars ...);
which units there are stands in ``units.txt``.
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
"""A power of a number, or of a power: ``9**9**9`` is no unit, and would take minutes to refuse."""

_RATE_PER_TIME = re.compile(r"FLOP/s(?=\s*/\s*(?:[mun]?s|min|h)\b)")
"""Who writes ``TFLOPS/s`` counts operations, and has the time beside them."""

_MONEY = re.compile(r"\b(USD|dollars?)\b|\$")

_LONGEST = 60
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
WRITTEN = (
    *_BINARY,
    *("kB", "MB", "GB", "TB", "s", "ms", "us", "ns", "min", "h", "Hz", "kHz", "MHz", "GHz"),
    *("W", "mW", "kW", "J", "mJ", "uJ", "nJ", "pJ", "V", "mV", "mm2", "um2", "FLOP", "TFLOP"),
)
"""Units that are often written, some with other letters large than they have."""
_OTHERWISE = {
    **dict.fromkeys(("sec", "secs"), "s"),
    **dict.fromkeys(("msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("usec", "usecs", "micros"), "us"),
    **dict.fromkeys(("nsec", "nsecs", "nanos"), "ns"),
    **dict.fromkeys(("mins",), "min"),
    **dict.fromkeys(("hr", "hrs"), "h"),
    **{f"{prefix}flops".lower(): f"{prefix}FLOP/s" for prefix in ("", *"kMGTPE")},
}
"""What people write, and what it is called here."""
_DERIVED = ("J", "W", "V", "Hz")
"""Coherent units that are shown by their own name and not by kilograms, metres and seconds."""


@cache
def registry() -> pint.UnitRegistry[float]:
    """The one registry of units, made when first asked for."""
    import pint

    return pint.UnitRegistry(str(Path(__file__).with_name("units.txt")))


@cache
def unit(text: str) -> pint.Unit:
    """The unit that a text names; the empty text is no unit.

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
    """The unit that a misspelt one is likely to mean, as a hint; empty where none is."""
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
    except Exception:  # noqa: BLE001 - pint raises of many kinds for what is no unit
        return ""
    return f"did you mean {mended!r}?" if mended else ""


def _words(text: str) -> str:
    """A unit's text as pint reads it."""
    return _POWER.sub(r"**\1", text.replace("$", "dollar").replace("%", "percent"))


@cache
def factor(text: str) -> float:
    """Return how many coherent units one of this unit is.

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
    """Return whether a number in one unit can be converted to the other.

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
    if text in _BINARY[1:] and value and math.isfinite(value):
        size = value * 1024 ** _BINARY.index(text)
        power = min(max(math.frexp(abs(size))[1] - 1, 0) // 10, len(_BINARY) - 1)
        return f"{size / 1024**power:.4g} {_BINARY[power]}"
    if not text or value == 0 or not math.isfinite(value):
        return f"{value:.4g} {text}".rstrip()
    if _MONEY.search(text) and abs(value) < 1:  # nobody pays in nanodollars
        return f"{value:.4g} {_MONEY.sub('$', text)}"
    if re.fullmatch(r"[A-Za-zµΩ]+(/[A-Za-z]+)?", text) and not same_dimension(text, ""):
        compact = (value * unit(text)).to_compact()
        return f"{compact.magnitude:.4g} {short(compact.units)}"
    return f"{value:.4g} {text}"
