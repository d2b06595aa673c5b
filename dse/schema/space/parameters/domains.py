"""Parsing of scalar parameter domains: numbers with units, ranges, lists, and their checks."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from dse.core.expressions.expression import fold_unit
from dse.core.expressions.operators import AGREEMENT
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real, Scale
from dse.errors import SpecError
from dse.schema.models import Quantity, Scalar
from dse.schema.space.file import DomainSpec
from dse.schema.space.rules.exactness import check_exact_values
from dse.units import units

MAX_VALUES = 100_000
_INFINITE = re.compile(r"[-+]?\.?(inf|infinity|nan)", re.IGNORECASE)

Number = int | float


@dataclass(frozen=True, slots=True)
class Amount:
    """Number in the coherent unit (factor 1) of its dimension, such as bytes for a memory size."""

    value: Number
    unit: str


class DomainReader(Protocol):
    """Interface that resolves quantities, argument names and generators in one space file."""

    def amount(self, text: Quantity, unit: str = "") -> Amount:
        """Parse a quantity or evaluate a formula; a number without a unit is in ``unit``."""
        ...

    def word(self, value: Scalar) -> Scalar:
        """Return the value of the argument named ``value``; any other value stays unchanged."""
        ...

    def generated(self, text: str, unit: str) -> tuple[Sequence[Number], str]:
        """Return the numbers that a generator such as ``pow2(1 .. 64)`` yields, and their unit."""
        ...


def parameter_of(name: str, spec: DomainSpec, reader: DomainReader) -> Parameter:
    """Build the scalar parameter that a space file declares.

    Raises:
        SpecError: the domain is empty or too large, its bounds are reversed, or it mixes units.
    """
    unit = spec.unit or ""
    if spec.boolean is not None:
        return Choice(name=name, values=(False, True))
    if spec.choice is not None:
        return _choice(name, spec.choice, unit)
    if spec.ordinal is not None:
        values, stated_unit = _parse_listing(spec.ordinal, unit, reader)
        return ordinal_of(name, values, stated_unit, spec.scale or "linear")
    if spec.real is not None:
        return _real(name, spec.real, unit, spec.scale or "linear", reader)
    assert spec.integer is not None
    return _integer(name, spec, reader)


def ordinal_of(
    name: str, values: Sequence[Number], unit: str = "", scale: Scale = "linear"
) -> Ordinal:
    """Build an ordinal parameter; if one value is a float, all are converted to floats.

    Args:
        name: the full name.
        values: the values in the coherent unit ``unit``.
        unit: the coherent unit.
        scale: ``linear`` or ``log``; a log scale requires ascending positive values.

    Raises:
        SpecError: the list is empty or too long, has a repeated value, or does not fit the scale.
    """
    if not values:
        raise SpecError("the domain is empty", hint="give at least one value: ordinal: [1, 2, 4]")
    if len(values) > MAX_VALUES:
        raise SpecError(f"more than {MAX_VALUES} values")
    if len(set(values)) < len(values):
        twice = next(value for value, count in Counter(values).items() if count > 1)
        raise SpecError(f"the value {twice} appears twice in the list", hint="leave one out")
    check_apart(values)
    if scale == "log" and (values[0] <= 0 or list(values) != sorted(values)):
        raise SpecError(f"a log scale needs ascending values above zero, not {values[0]} first")
    return Ordinal(name=name, values=uniform(values), unit=unit, scale=scale)


def check_apart(values: Sequence[Scalar]) -> None:
    """Check that no two numbers compare equal in rules, which compare floats to twelve digits.

    Raises:
        SpecError: two numbers agree to twelve digits.
    """
    numbers = sorted(v for v in values if isinstance(v, int | float) and not isinstance(v, bool))
    for one, other in pairwise(numbers):
        fractions = isinstance(one, float) or isinstance(other, float)
        if fractions and one != other and math.isclose(one, other, rel_tol=AGREEMENT):
            raise SpecError(
                f"{one!r} and {other!r} are one value: they agree to twelve digits",
                hint="leave one of them out",
            )


def uniform(values: Sequence[Number]) -> tuple[Number, ...]:
    """Return the numbers with a common type: all as floats if any of them is a float."""
    if any(isinstance(value, float) for value in values):
        return tuple(float(value) for value in values)
    return tuple(values)


def amount(text: Quantity, unit: str = "") -> Amount:
    """Parse a number with an optional unit; a number without one is in ``unit``.

    Raises:
        SpecError: the text is not a finite number, or its unit does not exist or does not fit
            ``unit``.
    """
    value: Number
    if isinstance(text, str):
        found = units.quantity(text)
        if found is None:
            raise _no_number(text)
        value, stated_unit = found
        if unit and not units.same_dimension(stated_unit, unit):
            raise SpecError(f"{text!r} is no quantity in {unit}", hint=f"use a unit such as {unit}")
    elif isinstance(text, bool):
        raise SpecError(f"{str(text).lower()} is no number")
    else:
        value, stated_unit = text, unit
    factor = units.factor(stated_unit)
    try:
        found_value = fold_unit(value, factor)
    except SpecError as error:
        raise SpecError(f"{str(text)[:60]!r} is no finite number") from error
    return Amount(plain(found_value), units.coherent(stated_unit))


def _no_number(text: str) -> SpecError:
    """Return the error for a string that should be a number, with a hint on the notation."""
    shown = repr(text[:60])
    if _INFINITE.fullmatch(text.strip()):
        return SpecError(f"{shown} is no finite number", hint="give a finite bound")
    word = re.fullmatch(r"[^\W\d]\w*", text) is not None
    words = "; words go in a 'choice: [...]'" if word else ""
    return SpecError(f"{shown} is no number", hint=f"write it like 64 or '64 KiB'{words}")


def amounts(
    texts: Sequence[Quantity], unit: str = "", reader: DomainReader | None = None
) -> tuple[list[Number], str]:
    """Parse numbers of one physical dimension; return them and their common coherent unit.

    Args:
        texts: the numbers, with or without units.
        unit: the unit of numbers without one.
        reader: resolves formulas; by default, only literals are accepted.

    Raises:
        SpecError: a text is not a number, or the units have different dimensions.
    """
    found = [amount(text, unit) if reader is None else reader.amount(text, unit) for text in texts]
    for text, one in zip(texts, found, strict=True):
        if one.unit != found[0].unit:
            raise SpecError(
                f"{texts[0]!r} and {text!r} are not in one unit", hint="give each its unit"
            )
    return [one.value for one in found], found[0].unit if found else units.coherent(unit)


def whole_number(value: Number) -> int | None:
    """Return the number as an ``int`` if it is integral, else ``None``."""
    return int(value) if value == int(value) else None


def literal(text: str) -> Quantity:
    """Parse the string as an int or a float; return the stripped string if it is neither."""
    words = text.strip()
    if len(words) > 400:
        return words
    try:
        return int(words)
    except ValueError:
        pass
    try:
        return float(words)
    except ValueError:
        return words


def plain(value: Number) -> Number:
    """Return the nearest integer to a number within rounding error of it, else the number.

    The relative tolerance is 1e-9: 65536.0 becomes 65536.
    """
    close = round(value)
    if abs(value) < 2**53 and abs(value - close) <= 1e-9 * max(abs(value), 1.0) and close != 0:
        return int(close)
    return 0 if value == 0 else value


def _parse_listing(
    stated: list[Quantity] | str, unit: str, reader: DomainReader
) -> tuple[Sequence[Number], str]:
    if isinstance(stated, str):
        return reader.generated(stated, unit)
    found = amounts(stated, unit, reader)
    check_exact_values(value for value in stated if not isinstance(value, str))
    return found


def _choice(name: str, values: Sequence[Scalar], unit: str) -> Choice:
    if unit and any(isinstance(value, bool | str) for value in values):
        raise SpecError(f"words have no unit, but 'unit' is {unit!r}", hint="leave 'unit' out")
    if unit:
        values, unit = amounts(values, unit)
    if not values:
        hint = "give at least one value: choice: [int8, int4]"
        raise SpecError("there is nothing to choose from", hint=hint)
    if len(values) > MAX_VALUES:
        raise SpecError(f"more than {MAX_VALUES} values")
    seen = set[tuple[bool, Scalar]]()
    for value in values:
        key = (isinstance(value, bool), value)
        if key in seen:
            raise SpecError(f"{value!r} appears twice in the list")
        seen.add(key)
    check_apart(values)
    return Choice(name=name, values=tuple(values), unit=unit)


def _bounds(
    stated: Sequence[Quantity], unit: str, reader: DomainReader
) -> tuple[Number, Number, str]:
    (low, high), stated_unit = amounts(stated, unit, reader)
    if low > high:
        problem = f"the range goes backwards: {stated[0]} .. {stated[1]}"
        raise SpecError(problem, hint=f"write [{stated[1]}, {stated[0]}]")
    return low, high, stated_unit


def _real(
    name: str, stated: Sequence[Quantity], unit: str, scale: Scale, reader: DomainReader
) -> Real:
    low, high, stated_unit = _bounds(stated, unit, reader)
    if scale == "log" and low <= 0:
        raise SpecError(f"a log scale needs bounds above zero, this starts at {stated[0]}")
    if not math.isfinite(float(high) - float(low)):
        raise SpecError(f"the range {stated[0]} .. {stated[1]} is wider than a number can be")
    return Real(name=name, low=float(low), high=float(high), unit=stated_unit, scale=scale)


def _integer(name: str, spec: DomainSpec, reader: DomainReader) -> Integer:
    assert spec.integer is not None
    low, high, unit = _bounds(spec.integer, spec.unit or "", reader)
    check_exact_values(value for value in spec.integer if not isinstance(value, str))
    least, most = whole_number(low), whole_number(high)
    if least is None or most is None:
        raise SpecError(f"an integer parameter needs whole bounds, not {low} .. {high}")
    step = _step(spec.step, unit, reader)
    if spec.scale == "log" and least <= 0:
        raise SpecError(f"a log scale needs bounds above zero, this starts at {spec.integer[0]}")
    count = (most - least) // step
    if count + 1 > MAX_VALUES:
        hint = "give a 'step', or use 'real' or 'pow2(a .. b)'"
        raise SpecError(f"more than {MAX_VALUES} values", hint=hint)
    top = least + count * step
    scale = spec.scale or "linear"
    return Integer(name=name, low=least, high=top, step=step, unit=unit, scale=scale)


def _step(stated: Quantity | None, unit: str, reader: DomainReader) -> int:
    if stated is None:
        return 1
    found = reader.amount(stated, unit)
    step = whole_number(found.value)
    if step is None or step < 1 or found.unit != unit:
        raise SpecError(f"'step' is a whole number above zero in the bounds' unit, not {stated!r}")
    return step
