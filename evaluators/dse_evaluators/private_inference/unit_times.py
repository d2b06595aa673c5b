"""Times of single BFV operations on one machine, read from a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from dse.errors import SpecError
from dse_evaluators.private_inference.bfv_parameters import RINGS

OPERATIONS = ("rotation", "addition", "product", "product_ntt", "to_ntt", "from_ntt")
"""Operations on a ciphertext; products have a plaintext factor.

``product`` includes the transforms of both factors, ``product_ntt`` has transformed factors.
"""

COLUMNS = ("ring", "data_primes", *(f"{name}_s" for name in OPERATIONS))

SHIPPED = Path(__file__).with_name("bfv_unit_times.csv")
"""CPU seconds of SEAL 4 by tenseal 0.3.18, on one core of an Intel Xeon, the least of rounds."""

_MEND = "python -m dse_evaluators.private_inference.measure_unit_times times.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTimes:
    """Seconds of each homomorphic operation, by ring dimension and number of data primes.

    The operations are those of :data:`OPERATIONS`.
    """

    label: str
    seconds: Mapping[tuple[int, int], tuple[float, ...]]


def read_unit_times(path: Path) -> UnitTimes:
    """Read the times of homomorphic operations from a CSV file.

    The columns are :data:`COLUMNS`.

    Raises:
        SpecError: the file cannot be read, lacks a column, or has an invalid or a repeated row.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}", hint=_MEND) from error
    rows = csv.DictReader(text.splitlines())
    lacking = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if lacking:
        raise SpecError(f"there is no column {lacking[0]!r}", where=f"{path}:1", hint=_MEND)
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    for row in rows:
        where = f"{path}:{rows.line_num}"
        key, seconds = _row(row, where)
        if key in found:
            problem = f"ring {key[0]} with {key[1]} data primes is listed twice"
            raise SpecError(problem, where=where, hint="keep one of the rows")
        found[key] = seconds
    if not found:
        raise SpecError("there are no rows", where=f"{path}:2", hint=_MEND)
    return UnitTimes(label=path.name, seconds=found)


def _row(row: Mapping[str, str | None], where: str) -> tuple[tuple[int, int], tuple[float, ...]]:
    numbers = []
    for name in COLUMNS:
        try:
            value = float(row[name] or "")
        except ValueError:
            value = float("nan")
        if not (isfinite(value) and value > 0):
            hint = "a number above 0"
            raise SpecError(f"{name} is {row[name]!r}", where=where, hint=hint)
        numbers.append(value)
    ring, primes = int(numbers[0]), int(numbers[1])
    if ring not in RINGS or primes != numbers[1]:
        known = ", ".join(map(str, RINGS))
        raise SpecError(f"ring is {row['ring']}", where=where, hint=f"one of {known}")
    return (ring, primes), tuple(numbers[2:])
