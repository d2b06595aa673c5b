"""Trials from external sources (CSV, data frames), not yet checked against a study."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dse.core.trial import State
from dse.errors import StorageError

MOST_ROWS = 10_000_000

_HEADER = re.compile(r"\s*(.*?)(?:\s+\[([^\[\]]*)\])?\s*")
"""Column header with an optional unit; ``bits[3]`` has none, since no space precedes it."""

FORMULA_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20"
"""Characters that begin a formula in a spreadsheet, for use in a regex character class."""

_DEFUSED = re.compile(rf"(?:^|(?<=[;\t\r\n]))'(?=[\t\r\n]|[ \"]*[{FORMULA_SIGNS}])")
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalTrial:
    """Trial from an external source (a file or data frame), in that source's names and units.

    ``values`` holds parameters and metrics by name, ``units`` the units of those for which the
    source states one. ``objectives`` are in the order and the units of the study's objectives.
    ``state`` is the final state, if known.
    """

    values: Mapping[str, Any]
    units: Mapping[str, str] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()
    state: State = State.DONE
    reason: str = ""
    cost_s: float = 0.0


def read_table(path: str | Path) -> list[ExternalTrial]:
    """Return one external trial per row of a CSV file; ``chip.energy [mJ]`` has a unit.

    Raises:
        StorageError: the file cannot be read, or is not a valid table.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            return list(_rows(csv.reader(opened, strict=True), str(file)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StorageError(f"{file} cannot be read as a table: {error}") from error


def of_frame(frame: Any) -> list[ExternalTrial]:  # a frame of pandas or polars
    """Return one external trial per row of a pandas or polars data frame."""
    units: Mapping[str, str] = getattr(frame, "attrs", {}).get("units", {})
    rows = frame.to_dict("records") if hasattr(frame, "attrs") else frame.to_dicts()
    headers = [header(str(name)) for name in frame.columns]
    headers = [(name, unit or units.get(name, "")) for name, unit in headers]
    return [_build_found(headers, list(row.values())) for row in rows]


def _rows(lines: Iterator[Sequence[str]], file: str) -> Iterator[ExternalTrial]:
    headers = [header(cell) for cell in next(lines, [])]
    if not headers or not all(name for name, _ in headers) or len(set(headers)) < len(headers):
        raise StorageError("the first line does not name the columns", where=f"{file}:1")
    for place, cells in enumerate(lines, start=2):
        if place > MOST_ROWS:
            raise StorageError(f"the table has more than {MOST_ROWS:,} rows", where=file)
        if len(cells) != len(headers):
            problem = f"this row has {len(cells)} cells, and the first line {len(headers)}"
            raise StorageError(problem, where=f"{file}:{place}")
        yield _build_found(headers, [_cell(cell) for cell in cells])


def _build_found(headers: Sequence[tuple[str, str]], cells: Sequence[Any]) -> ExternalTrial:
    values: dict[str, Any] = {}
    units: dict[str, str] = {}
    for (name, unit), cell in zip(headers, cells, strict=True):
        empty = cell is None or cell != cell  # noqa: PLR0124 - in pandas it is NaN
        if not empty and name not in values:  # a column repeated in another unit is ignored
            values[name], units[name] = cell, unit
    state = str(values.get("state", ""))
    ended = state in {one.value for one in State if one.finished}
    return ExternalTrial(
        values=values,
        units=units,
        state=State(state) if ended else State.PENDING if state else State.DONE,
        reason=str(values.get("reason", "")),
    )


def header(cell: str) -> tuple[str, str]:
    """Split the header of a column into its name and its unit; the unit may be empty."""
    found = _HEADER.fullmatch(cell)
    return (found[1], found[2] or "") if found else (cell, "")


def strip_formula_guards(text: str) -> str:
    """Remove the apostrophes that the CSV export adds against spreadsheet formula injection."""
    return _DEFUSED.sub("", text)


def _cell(text: str) -> Any:
    """Parse a cell as a number, Boolean or text; ``None`` if it is empty."""
    word = text.strip()
    if not word or word.lower() in _TRUTHS:
        return _TRUTHS.get(word.lower())
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
