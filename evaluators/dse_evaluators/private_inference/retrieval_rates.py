"""Rates at which devices evaluate distributed point functions for private look-ups."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest

PUBLISHED_RATES = Path(__file__).with_name("retrieval_rates.csv")
"""Rates of one V100 and of a CPU with 32 threads, by Lam et al., 2023."""

_COLUMNS = ("device", "prf", "entries", "rate_per_s")


def read_rates(path: Path) -> Mapping[tuple[str, str], Floats]:
    """Return rates by device and pseudorandom function: entries and queries per second, (r, 2).

    The rows of a device and function are sorted by the number of entries.

    Args:
        path: CSV file with the columns device, prf, entries and rate_per_s.

    Raises:
        SpecError: the file cannot be read, lacks a column, has two rates of one table size, or a
            number that is not positive.
    """
    found: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            _check_columns(path, rows.fieldnames or ())
            for row in rows:
                entries, rate = (_positive(row, name, path, rows.line_num) for name in _COLUMNS[2:])
                known = found[row["device"], row["prf"]]
                if entries in known:
                    where = f"{path.name}:{rows.line_num}"
                    raise SpecError(
                        f"{where}: a second rate for {entries:g} entries",
                        hint=f"one row for {row['device']}, {row['prf']} and each table size",
                        part=["rates"],
                    )
                known[entries] = rate
    except (OSError, UnicodeDecodeError) as error:
        hint = f"a CSV file with the columns {', '.join(_COLUMNS)}"
        raise SpecError(f"cannot read {path}", hint=hint, part=["rates"]) from error
    if not found:
        raise SpecError(f"{path.name} has no rates", hint="a row each", part=["rates"])
    return {key: np.array(sorted(rows.items())) for key, rows in found.items()}


def rate_at(entries: float, rates: Floats) -> float:
    """Return the queries per second at a table size, interpolated linearly in logarithms.

    Above the largest measured size, the time of a query is proportional to the size.

    Args:
        entries: entries of the table.
        rates: entries and queries per second, (r, 2), sorted by entries.
    """
    sizes, known = rates[:, 0], rates[:, 1]
    if entries > sizes[-1]:
        return float(known[-1] * sizes[-1] / entries)
    return float(np.exp(np.interp(np.log(entries), np.log(sizes), np.log(known))))


def _check_columns(path: Path, names: object) -> None:
    known = list(names) if isinstance(names, list | tuple) else []
    absent = [name for name in _COLUMNS if name not in known]
    if absent:
        hint = nearest(absent[0], known) or f"the header is {','.join(_COLUMNS)}"
        raise SpecError(f"{path.name}:1: there is no column {absent[0]}", hint=hint, part=["rates"])


def _positive(row: Mapping[str, str], name: str, path: Path, line: int) -> float:
    try:
        value = float(row[name])
    except (TypeError, ValueError):
        value = float("nan")
    if not 0.0 < value < float("inf"):
        problem = f"{path.name}:{line}: {name} is {row[name]!r}"
        raise SpecError(problem, hint="a positive number", part=["rates"])
    return value
