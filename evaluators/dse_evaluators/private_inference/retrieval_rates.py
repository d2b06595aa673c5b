"""Rates at which devices evaluate distributed point functions for private look-ups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import parse_positive, read_csv_rows

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
    for row in read_csv_rows(path, _COLUMNS, part=["rates"]):
        entries, rate = (parse_positive(row, name) for name in _COLUMNS[2:])
        known = found[row.cells["device"], row.cells["prf"]]
        if entries in known:
            problem = f"a second rate for {entries:g} entries"
            hint = "one row for a device, a prf and a table size"
            raise SpecError(problem, where=row.place, hint=hint)
        known[entries] = rate
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
