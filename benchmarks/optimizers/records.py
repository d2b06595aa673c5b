"""The files that the runs end in: one row for each trial, and one for each run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

KEY = ("problem", "optimizer", "seed")
CELLS = (*KEY, "trial", "share", "feasible", "optimizer_s")
RUNS = (
    *KEY,
    "trials",
    "asked",
    "ended",
    "distinct",
    "refused",
    "given_up",
    "optimizer_s",
    "wall_s",
    "memory_bytes",
)


ALL_TRIALS, LIMIT, NOTHING_LEFT = "trials", "limit", "nothing left"
"""Why a run ended."""


def key_of(row: Mapping[str, str]) -> tuple[str, str, int]:
    """Which run the row is of."""
    return row["problem"], row["optimizer"], int(row["seed"])


def runs_file(cells: Path) -> Path:
    """Where the rows about whole runs lie, beside the cells."""
    return cells.with_name(f"{cells.stem}.runs.csv")


def finished(cells: Path) -> dict[tuple[str, str, int], int]:
    """How many trials each run that is in the file was asked for."""
    found: dict[tuple[str, str, int], int] = {}
    if runs_file(cells).exists():
        for row in rows_of(runs_file(cells)):
            key = key_of(row)
            found[key] = max(found.get(key, 0), int(row["asked"]))
    return found


def add(cells: Path, key: tuple[str, str, int], played: Mapping[str, Any]) -> None:
    """Append a run; the row about it comes last and makes it count."""
    named = dict(zip(KEY, key, strict=True))
    _append(cells, CELLS, ({**named, **row} for row in played["rows"]))
    _append(runs_file(cells), RUNS, [{**named, **played["about"]}])


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def _append(file: Path, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    new = not file.exists()
    with file.open("a", newline="") as lines:
        writer = csv.DictWriter(lines, list(columns))
        if new:
            writer.writeheader()
        writer.writerows(rows)
