"""From a parameter's YAML to the parameter: numbers with units, generated lists, checks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dse import units
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.errors import SpecError, nearest
from dse.schema.models import ParameterSpec, Quantity

MAX_VALUES = 100_000

_CALL = re.compile(r"^\s*([a-z]\w*)\((.*)\)\s*$", re.DOTALL)

Number = int | float


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in the coherent unit of its dimension."""

    value: Number
    unit: str


def parameter_of(
    name: str, spec: ParameterSpec, numbers: Callable[[str], Sequence[Number]]
) -> Parameter:
    """The parameter that the file describes.

    Args:
        name: the parameter's name in its space.
        spec: the checked YAML.
        numbers: the values of another numeric parameter, for ``divisors(other)``.

    Raises:
        SpecError: the domain is empty, backwards, or mixes units.
    """
    if spec.boolean is not None:
        return Choice(name=name, values=(False, True))
    if spec.choice is not None:
        return _choice(name, spec)
    if spec.ordinal is not None:
        values, unit = _ordinal(spec, numbers)
        return Ordinal(name=name, values=values, unit=unit)
    bounds = spec.real if spec.real is not None else spec.integer
    assert bounds is not None
    (low, high), unit = amounts(bounds, spec.unit)
    if low > high:
        raise SpecError(f"the range goes backwards: {bounds[0]} .. {bounds[1]}")
    if spec.scale == "log" and low <= 0:
        raise SpecError(f"a log scale needs bounds above zero, this starts at {bounds[0]}")
    if spec.real is not None:
        return Real(name=name, low=float(low), high=float(high), unit=unit, scale=spec.scale)
    return _integer(name, spec, (low, high), unit)


def amount(text: Quantity, unit: str = "") -> Amount:
    """A number from YAML in coherent units; a bare one is in ``unit``.

    Raises:
        SpecError: it is no number, or its unit does not exist or does not fit ``unit``.
    """
    if isinstance(text, str):
        found = units.quantity(text)
        if found is None:
            raise SpecError(f"{text!r} is no number", hint="write it like 64 or '64 KiB'")
        value, told = found
        if unit and not units.same_dimension(told, unit):
            raise SpecError(f"{text!r} is no quantity in {unit}", hint=f"use a unit such as {unit}")
    else:
        value, told = text, unit
    found_value = value * units.factor(told)
    if not math.isfinite(found_value):
        raise SpecError(f"{text!r} is no finite number")
    return Amount(_whole(found_value), units.coherent(told))


def amounts(texts: Sequence[Quantity], unit: str = "") -> tuple[list[Number], str]:
    """Numbers from YAML that share one unit.

    Raises:
        SpecError: they do not.
    """
    found = [amount(text, unit) for text in texts]
    for text, one in zip(texts, found, strict=True):
        if one.unit != found[0].unit:
            raise SpecError(
                f"{texts[0]!r} and {text!r} are not in one unit", hint="give each its unit"
            )
    return [one.value for one in found], found[0].unit if found else ""


def _choice(name: str, spec: ParameterSpec) -> Choice:
    values = tuple(spec.choice or ())
    unit = spec.unit
    if unit and any(isinstance(value, bool | str) for value in values):
        raise SpecError(f"words have no unit, but this says {unit!r}", hint="leave 'unit' out")
    if unit:
        numbers, unit = amounts(values, unit)
        values = tuple(numbers)
    if not values:
        raise SpecError("there is nothing to choose from")
    twice = next((v for place, v in enumerate(values) if _holds(values[:place], v)), None)
    if twice is not None:
        raise SpecError(f"{twice!r} stands twice in the list")
    return Choice(name=name, values=values, unit=unit)


def _holds(values: Sequence[object], value: object) -> bool:
    return any(v == value and type(v) is type(value) for v in values)


def _integer(name: str, spec: ParameterSpec, bounds: tuple[Number, Number], unit: str) -> Integer:
    low, high = bounds
    if low != int(low) or high != int(high):
        raise SpecError(f"an integer parameter needs whole bounds, not {low} .. {high}")
    step = spec.step or 1
    if (int(high) - int(low)) // step + 1 > MAX_VALUES:
        raise SpecError(
            f"more than {MAX_VALUES} values", hint="give a 'step', or use 'real' or 'pow2(a .. b)'"
        )
    top = int(low) + (int(high) - int(low)) // step * step
    return Integer(name=name, low=int(low), high=top, step=step, unit=unit, scale=spec.scale)


def _ordinal(
    spec: ParameterSpec, numbers: Callable[[str], Sequence[Number]]
) -> tuple[tuple[Number, ...], str]:
    if isinstance(spec.ordinal, str):
        values, unit = _generated(spec.ordinal, spec.unit, numbers)
    else:
        values, unit = amounts(spec.ordinal or (), spec.unit)
    if not values:
        raise SpecError("the domain is empty")
    if len(set(values)) < len(values):
        raise SpecError("a value stands twice in the list")
    if any(isinstance(value, float) for value in values):  # one kind of number, so one key
        values = [float(value) for value in values]
    return tuple(values), unit


def divided(spec: ParameterSpec) -> str | None:
    """The parameter whose divisors the domain is, if it is so generated."""
    found = _CALL.match(spec.ordinal) if isinstance(spec.ordinal, str) else None
    return found.group(2).strip() if found and found.group(1) == "divisors" else None


def _generated(
    text: str, unit: str, numbers: Callable[[str], Sequence[Number]]
) -> tuple[list[Number], str]:
    found = _CALL.match(text)
    if found is None or found.group(1) not in _GENERATORS:
        name = found.group(1) if found else text
        raise SpecError(
            f"{text!r} generates no list",
            hint=nearest(name, _GENERATORS)
            + " (pow2(1 .. 64), multiples(8, 8 .. 64), divisors(other))",
        )
    if found.group(1) == "divisors":
        whole = {int(n) for n in numbers(found.group(2).strip()) if n == int(n) and n > 0}
        return sorted({d for n in whole for d in _divisors(n)}), ""
    return _GENERATORS[found.group(1)](found.group(2), unit)


def _divisors(number: int) -> set[int]:
    low = {d for d in range(1, int(number**0.5) + 1) if number % d == 0}
    return low | {number // d for d in low}


def _pow2(arguments: str, unit: str) -> tuple[list[Number], str]:
    (low, high), told = amounts(_range(arguments), unit)
    if low <= 0:
        raise SpecError(f"powers of two start above zero, not at {low}")
    exponents = range(-64, 65)
    return [_whole(2.0**e) for e in exponents if low <= 2.0**e <= high], told


def _multiples(arguments: str, unit: str) -> tuple[list[Number], str]:
    step_text, comma, rest = arguments.partition(",")
    if not comma:
        raise SpecError(f"multiples({arguments}) needs a step", hint="multiples(64, 64 .. 4096)")
    (step, low, high), told = amounts([literal(step_text), *_range(rest)], unit)
    if step <= 0:
        raise SpecError(f"the step must be above zero, not {step}")
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last - first > MAX_VALUES:
        raise SpecError(f"more than {MAX_VALUES} values")
    return [_rounded(step * k) for k in range(first, last + 1)], told


def _stepped(arguments: str, unit: str) -> tuple[list[Number], str]:
    ends, _, step_text = arguments.partition(",")
    (low, high, step), told = amounts([*_range(ends), literal(step_text or "1")], unit)
    if step <= 0 or (high - low) / step > MAX_VALUES:
        raise SpecError(f"range({arguments}) has no step, or more than {MAX_VALUES} values")
    count = int((high - low) / step + 1e-9) + 1
    return [_rounded(low + k * step) for k in range(count)], told


def _rounded(value: Number) -> Number:
    """The number without the dust of its last binary digits: 0.3, not 0.30000000000000004."""
    return _whole(float(f"{value:.12g}"))


_GENERATORS: Mapping[str, Callable[[str, str], tuple[list[Number], str]]] = {
    "pow2": _pow2,
    "multiples": _multiples,
    "range": _stepped,
    "divisors": lambda _, unit: ([], unit),
}


def _range(text: str) -> list[Quantity]:
    low, dots, high = text.partition("..")
    if not dots:
        raise SpecError(f"{text.strip()!r} is no range", hint="write it like 64 KiB .. 8 MiB")
    return [literal(low), literal(high)]


def literal(text: str) -> Quantity:
    """A bare number where the text is one, else the text."""
    words = text.strip()
    try:
        return int(words)
    except ValueError:
        pass
    try:
        return float(words)
    except ValueError:
        return words


def _whole(value: Number) -> Number:
    """An integer where the number is one: 65536.0 bytes are 65536."""
    close = round(value)
    if abs(value) < 2**53 and abs(value - close) <= 1e-9 * max(abs(value), 1.0) and close != 0:
        return int(close)
    return 0 if value == 0 else value
