"""Times of single BFV operations on one machine, read from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import CsvRow, parse_positive, read_csv_rows
from dse_evaluators.private_inference.bfv_parameters import RINGS

OPERATIONS = ("rotation", "addition", "product", "product_ntt", "to_ntt", "from_ntt")
"""Operations on a ciphertext; products have a plaintext factor.

``product`` includes the transforms of both factors, ``product_ntt`` has transformed factors.
"""

COLUMNS = ("ring", "data_primes", *(f"{name}_s" for name in OPERATIONS))

SHIPPED = Path(__file__).with_name("bfv_unit_times.csv")
"""CPU seconds of SEAL 4 by tenseal 0.3.18, on one core of an Intel Xeon, the least of rounds."""

_EXAMPLE = (
    f"{','.join(COLUMNS)}, which python -m dse_evaluators.private_inference.measure_unit_times "
    "times.csv writes"
)


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
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    for row in read_csv_rows(path, COLUMNS, example=_EXAMPLE):
        key, seconds = _read_row(row)
        if key in found:
            problem = f"ring {key[0]} with {key[1]} data primes is listed twice"
            raise SpecError(problem, where=row.place, hint="keep one of the rows")
        found[key] = seconds
    return UnitTimes(label=path.name, seconds=found)


def _read_row(row: CsvRow) -> tuple[tuple[int, int], tuple[float, ...]]:
    numbers = [parse_positive(row, name) for name in COLUMNS]
    ring, primes = int(numbers[0]), int(numbers[1])
    if ring not in RINGS or primes != numbers[1]:
        hint = f"one of {', '.join(map(str, RINGS))}"
        raise SpecError(f"ring is {row.cells['ring']}", where=row.place, hint=hint)
    return (ring, primes), tuple(numbers[2:])
