"""Units, based on pint: parsing, conversion, and formatting of quantities.

Internally, every number is in the coherent unit of its dimension (seconds, joules, bytes, dollars
...). The units are defined in ``units.txt``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
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
    """Return the size of a unit in coherent units of its dimension, such as 1e6 for ``MHz``.

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
    """Format a number with four significant digits, or with all of those before the point."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


@cache
def coherent(text: str) -> str:
    """Return the common name of the coherent unit of the same dimension: ``Hz`` for ``MHz``."""
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
    """Format a number with a readable prefix of its unit: ``64 KiB``, ``1.2 GHz``, ``3.1 mJ``.

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


TEXT = "text"
"""Pseudo-unit of a parameter whose values are texts."""


def unit_of(expression: Expression, units: Mapping[str, str]) -> str:
    """Return the unit of the formula's value, given each name's unit; empty if it has no unit.

    Raises:
        SpecError: units are incompatible: a length is added to a time, or compared with a text.
    """
    return _unit(expression.node, units, expression.text)


def check_shares(rule: Expression, units: Mapping[str, str]) -> None:
    """Raise SpecError if a quantity in percent is compared with a plain number above one.

    A user who writes ``accuracy >= 90`` means 90 percent, but a bare 90 is 9,000 percent.

    Raises:
        SpecError: the rule contains such a comparison.
    """
    operands = rule.node.operands if isinstance(rule.node, syntax.Compare) else ()
    shares = [one for one in operands if isinstance(one, syntax.Name) and _is_share(one, units)]
    bare = [one.value for one in operands if isinstance(one, syntax.Number) and not one.unit]
    if shares and bare and abs(bare[0]) > 1:
        value = bare[0]
        raise SpecError(
            f"the bare number {value:g} is {100 * value:g} % here: {rule.text!r}",
            hint=f"write {value:g} percent, or {100 * value:g} percent if you mean that",
        )


def _is_share(name: syntax.Name, units: Mapping[str, str]) -> bool:
    unit_of_name = units.get(name.name, "")
    return unit_of_name not in ("", TEXT) and unit(unit_of_name) == unit("percent")


def in_coherent(expression: Expression, factors: Mapping[str, float]) -> Expression:
    """Return the formula with each name multiplied by its conversion factor to coherent units.

    Args:
        expression: a formula whose names hold numbers in their own units.
        factors: for each name, the size of its unit in coherent units; 1 if missing.
    """

    def scaled(node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Name) and factors.get(node.name, 1.0) != 1.0:
            return syntax.Binary("*", node, syntax.Number(factors[node.name]))
        return node

    return Expression(expression.text, syntax.map_nodes(expression.node, scaled))


def _unit(  # noqa: C901, PLR0912 - one case per kind of node
    node: syntax.Node, units: Mapping[str, str], text: str
) -> str:
    match node:
        case syntax.Number():
            unit(node.unit)
            return node.unit
        case syntax.Text():
            return TEXT
        case syntax.Truth() | syntax.Absent() | syntax.Listed():
            return ""
        case syntax.Name():
            return units.get(node.name, "")
        case syntax.Unary():
            return _number(node.operand, units, text)
        case syntax.Binary():
            return _arithmetic(node, units, text)
        case syntax.Compare():
            _comparison(node, units, text)
            return ""
        case syntax.Logic():
            for operand in node.operands:
                _number(operand, units, text)
            return ""
        case syntax.Member():
            _agree(syntax.children(node), _units(node, units, text), text)
            return ""
        case syntax.Call():
            return _function(node, units, text)
        case syntax.Lookup():
            return _lookup(node, units, text)
        case syntax.Index() | syntax.Field():
            raise AssertionError("a formula with lists must be expanded before its unit is derived")
        case _:
            assert_never(node)


def _comparison(node: syntax.Compare, units: Mapping[str, str], text: str) -> None:
    agreed = _agree(node.operands, _units(node, units, text), text)
    if agreed == TEXT and not set(node.operators) <= {"==", "!="}:
        raise SpecError(f"words have no order: {text!r}", hint="compare them with == or !=")


def _lookup(node: syntax.Lookup, units: Mapping[str, str], text: str) -> str:
    by_word = _unit(node.key, units, text) == TEXT
    words = any(isinstance(key, str) for key, _ in node.entries)
    if node.entries and by_word != words:
        kinds = ("a word", "numbers") if by_word else ("a number", "words")
        raise SpecError(
            f"{node.text} is looked up by {kinds[0]}, its keys are {kinds[1]}: {text!r}"
        )
    return TEXT if any(isinstance(value, str) for _, value in node.entries) else node.unit


def _arithmetic(node: syntax.Binary, units: Mapping[str, str], text: str) -> str:
    left, right = _number(node.left, units, text), _number(node.right, units, text)
    if node.operator in ("+", "-", "%"):
        return _agree((node.left, node.right), (left, right), text)
    if node.operator == "*":
        return _times(left, right)
    if node.operator in ("/", "//"):
        return short(unit(left) / unit(right))
    return _power(node, left, right, text)


@cache
def _times(left: str, right: str) -> str:
    return short(unit(left) * unit(right))


def _power(node: syntax.Binary, left: str, right: str, text: str) -> str:
    if not same_dimension(right, ""):
        raise SpecError(f"an exponent has no unit, but this one is in {right}: {text!r}")
    if same_dimension(left, ""):
        return ""
    if not isinstance(node.right, syntax.Number):
        raise SpecError(f"a quantity in {left} needs a plain number as exponent: {text!r}")
    return short(unit(left) ** node.right.value)


def _function(node: syntax.Call, units: Mapping[str, str], text: str) -> str:
    if node.function == "all_different":
        _agree(node.arguments, _units(node, units, text), text)
        return ""
    found = [_number(argument, units, text) for argument in node.arguments]
    if node.function in ("min", "max", "sum"):
        return _agree(node.arguments, found, text)
    if node.function == "product":
        return reduce(_times, found)
    argument = found[0]
    if node.function == "abs":
        return argument
    if node.function == "sqrt":
        return short(unit(argument) ** 0.5)
    if not same_dimension(argument, ""):
        raise SpecError(
            f"{node.function} takes a bare number, not one in {argument}: {text!r}",
            hint=f"divide by a quantity first, such as 1 {argument}",
        )
    return ""


def _number(node: syntax.Node, units: Mapping[str, str], text: str) -> str:
    found = _unit(node, units, text)
    if found == TEXT:
        raise SpecError(f"a word stands where a number or a truth is needed: {text!r}")
    return found


def _units(node: syntax.Node, units: Mapping[str, str], text: str) -> list[str]:
    """Return the units of the operands of an expression, in order."""
    return [_unit(child, units, text) for child in syntax.children(node)]


def _agree(nodes: Sequence[syntax.Node], found: Sequence[str], text: str) -> str:
    """Return the first operand's unit; raise SpecError if the operands' dimensions differ.

    A bare 0 fits any dimension.
    """
    fixed = [u for u, node in zip(found, nodes, strict=True) if not _is_zero(node)] or [""]
    for other in fixed[1:]:
        if (other == TEXT) != (fixed[0] == TEXT):
            raise SpecError(f"a word is compared with a number: {text!r}")
        if other != TEXT and not same_dimension(fixed[0], other):
            raise SpecError(
                f"{_describe_unit(fixed[0])} does not go with {_describe_unit(other)}: {text!r}",
                hint=_mend(nodes, fixed[0], other),
            )
    return fixed[0]


def _mend(nodes: Sequence[syntax.Node], first: str, other: str) -> str:
    """Return a hint on a unit error: the unit that a number lacks, or that both operands need."""
    pairs = [
        (node, unit) for node in nodes if isinstance(node, syntax.Number) for unit in (first, other)
    ]
    for node, wanted in pairs:
        if wanted and not same_dimension(node.unit, wanted) and wanted != TEXT:
            kind = f", not {node.unit}" if node.unit else ""
            return f"give it a unit such as {wanted}{kind}: '{node.value:g} {wanted}'"
    return f"give both the unit {first or other}"


def _is_zero(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Number) and node.value == 0 and not node.unit


def _describe_unit(text: str) -> str:
    return f"a quantity in {text}" if text else "a bare number"
