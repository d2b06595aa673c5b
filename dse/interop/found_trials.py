"""Trials of elsewhere, before anyone looked whether a study of ours can take them."""

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
"""``bits[3]`` has no unit: there is no blank."""
FORMULA_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20"
"""What begins a formula in a spreadsheet, for a class of a pattern."""

_DEFUSED = re.compile(rf"(?:^|(?<=[;\t\r\n]))'(?=[\t\r\n]|[ \"]*[{FORMULA_SIGNS}])")
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalTrial:
    """One trial in another tool's words.

    ``values`` are settings and numbers by name, ``units`` the unit of those that tell one;
    ``objectives`` are in the order of the study's, in the units of its objectives. ``state`` is how
    it ended, where that is known.
    """

    values: Mapping[str, Any]
    units: Mapping[str, str] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()
    state: State = State.DONE
    reason: str = ""
    cost_s: float = 0.0


def read_table(path: str | Path) -> list[ExternalTrial]:
    """Return the rows of a CSV file; a header such as ``chip.energy [mJ]`` gives the unit.

    Raises:
        StorageError: it cannot be read, or is no table.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            return list(_rows(csv.reader(opened, strict=True), str(file)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StorageError(f"{file} cannot be read as a table: {error}") from error


def of_frame(frame: Any) -> list[ExternalTrial]:  # a frame of pandas or polars
    """The rows of a data frame of pandas or polars."""
    told: Mapping[str, str] = getattr(frame, "attrs", {}).get("units", {})
    rows = frame.to_dict("records") if hasattr(frame, "attrs") else frame.to_dicts()
    headers = [header(str(name)) for name in frame.columns]
    headers = [(name, unit or told.get(name, "")) for name, unit in headers]
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
        if not empty and name not in values:  # of one number in two units the first
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
    """Split the header of a column into its name and its unit, empty where there is none."""
    found = _HEADER.fullmatch(cell)
    return (found[1], found[2] or "") if found else (cell, "")


def strip_formula_guards(text: str) -> str:
    """Remove the apostrophes that keep a spreadsheet from reading the text as a formula."""
    return _DEFUSED.sub("", text)


def _cell(text: str) -> Any:
    """The number, truth or word that a cell holds; ``None`` where it is empty."""
    word = text.strip()
    if not word or word.lower() in _TRUTHS:
        return _TRUTHS.get(word.lower())
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
