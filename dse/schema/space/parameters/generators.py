"""Domain generators such as ``pow2(1 .. 64)``, ``multiples(8, 8 .. 64)`` or ``divisors(gpus)``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dse.errors import SpecError, nearest
from dse.schema.models import Quantity
from dse.schema.space.parameters.domains import (
    MAX_VALUES,
    DomainReader,
    Number,
    amounts,
    literal,
    plain,
)
from dse.schema.space.rules.exactness import check_exact_values

_CALL = re.compile(r"^\s*([a-z]\w*)\s*\((.*)\)\s*$", re.DOTALL)
_LONGEST = 1_000
_MAX_DIVIDEND = 10**12
_MAX_DIVISIONS = 50_000_000


def generate_numbers(
    text: str,
    unit: str,
    reader: DomainReader,
    values: Callable[[str], tuple[Sequence[Number], str]],
) -> tuple[Sequence[Number], str]:
    """Return the numbers that a domain generator yields, and their coherent unit.

    Args:
        text: such as ``pow2(1 KiB .. 64 KiB)``.
        unit: the unit of numbers without one.
        reader: resolves the file's quantities.
        values: returns the possible values of a formula over parameters, and their unit, for
            ``divisors(gpus)``.

    Raises:
        SpecError: the text is not a valid generator, or generates too many values.
    """
    found = _CALL.match(text) if len(text) <= _LONGEST else None
    if found is None or found.group(1) not in _GENERATORS:
        name = found.group(1) if found else text[:60]
        raise SpecError(
            f"{text[:60]!r} generates no list",
            hint=nearest(name, _GENERATORS)
            + " (pow2(1 .. 64), multiples(8, 8 .. 64), range(0 .. 1, 0.1), divisors(other))",
        )
    generator, inner = found.groups()
    if generator == "divisors":
        numbers, stated_unit = values(inner)
        return _divisors(inner, numbers), stated_unit
    return _GENERATORS[generator](inner, unit, reader)


def extract_dividend(stated: object) -> str | None:
    """Return the argument of a ``divisors(...)`` domain; ``None`` for any other domain."""
    found = _CALL.match(stated) if isinstance(stated, str) and len(stated) <= _LONGEST else None
    return found.group(2).strip() if found and found.group(1) == "divisors" else None


def _divisors(text: str, numbers: Sequence[Number]) -> list[Number]:
    """Return all divisors of the positive integers among the numbers, ascending, without repeats.

    Raises:
        SpecError: there is no positive integer, or finding the divisors would take too long.
    """
    whole = [int(n) for n in numbers if math.isfinite(n) and n == int(n) and n > 0]
    if not whole:
        raise SpecError(f"{text!r} is never a whole number above zero")
    if max(whole) > _MAX_DIVIDEND or sum(math.isqrt(n) for n in whole) > _MAX_DIVISIONS:
        raise SpecError(
            f"the divisors of {text!r} are beyond counting: it reaches {max(whole):,}",
            hint=f"divide numbers of at most {_MAX_DIVIDEND:,}, and fewer of them",
        )
    found = set[Number]()
    for number in whole:
        low = np.arange(1, math.isqrt(number) + 1)
        low = low[number % low == 0]
        found.update(low.tolist())
        found.update((number // low).tolist())
    return sorted(found)


def _pow2(arguments: str, unit: str, reader: DomainReader) -> tuple[list[Number], str]:
    (low, high), stated_unit = amounts(_range(arguments), unit, reader)
    _check_order(low, high, arguments)
    if low <= 0:
        raise SpecError(f"powers of two start above zero, not at {low}")
    exponents = range(-64, 65)
    return [plain(2.0**e) for e in exponents if low <= 2.0**e <= high], stated_unit


def _multiples(arguments: str, unit: str, reader: DomainReader) -> tuple[list[Number], str]:
    step_text, comma, rest = arguments.partition(",")
    if not comma:
        raise SpecError(f"multiples({arguments}) needs a step", hint="multiples(64, 64 .. 4096)")
    (step, low, high), stated_unit = amounts([literal(step_text), *_range(rest)], unit, reader)
    if step <= 0:
        raise SpecError(f"the step must be above zero, not {step}")
    _check_order(low, high, rest)
    if not high / step - low / step <= MAX_VALUES:
        raise SpecError(f"more than {MAX_VALUES} values")
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [_round_number(step * k) for k in range(first, last + 1)], stated_unit


def _generate_range(arguments: str, unit: str, reader: DomainReader) -> tuple[list[Number], str]:
    ends, _, step_text = arguments.partition(",")
    (low, high, step), stated_unit = amounts(
        [*_range(ends), literal(step_text or "1")], unit, reader
    )
    _check_order(low, high, ends)
    if step <= 0 or not (high - low) / step <= MAX_VALUES:
        raise SpecError(f"range({arguments}) has no step, or more than {MAX_VALUES} values")
    count = math.floor((high - low) / step + 1e-9) + 1
    return [_round_number(low + k * step) for k in range(count)], stated_unit


_GENERATORS: Mapping[str, Callable[[str, str, DomainReader], tuple[list[Number], str]]] = {
    "pow2": _pow2,
    "multiples": _multiples,
    "range": _generate_range,
    "divisors": lambda _text, unit, _reader: ([], unit),
}


def _check_order(low: Number, high: Number, text: str) -> None:
    """Raise SpecError if the lower bound of a range ``low .. high`` exceeds the upper one."""
    if low > high:
        first, _, last = text.partition("..")
        hint = f"write {last.strip()} .. {first.strip()}"
        raise SpecError(f"the range goes backwards: {text.strip()}", hint=hint)


def _range(text: str) -> list[Quantity]:
    low, dots, high = text.partition("..")
    if not dots:
        raise SpecError(f"{text.strip()!r} is no range", hint="write it like 64 KiB .. 8 MiB")
    ends = [literal(low), literal(high)]
    check_exact_values(ends)
    return ends


def _round_number(value: Number) -> Number:
    """Return the number without binary rounding error: 0.3, not 0.30000000000000004."""
    return value if isinstance(value, int) else plain(float(f"{value:.12g}"))
