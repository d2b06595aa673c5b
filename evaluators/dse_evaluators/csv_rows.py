"""Rows of a CSV file of the user, with errors that name the file and the line."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dse.errors import SpecError, nearest


class CsvRow(NamedTuple):
    """Texts of a row by column, and its place in the file."""

    place: str
    cells: Mapping[str, str]


def read_csv_rows(path: Path, columns: Sequence[str]) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file; blank lines are left out.

    Args:
        path: the file; its first line has the names of the columns.
        columns: columns that the file must have.

    Raises:
        SpecError: the file cannot be read, or lacks a column, or a cell of ``columns`` is blank.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        beside = [one.name for one in path.parent.glob("*.csv")]
        raise SpecError(f"there is no file {path}", hint=nearest(path.name, beside)) from error
    except (OSError, UnicodeDecodeError) as error:
        hint = f"a CSV file with the columns {', '.join(columns)}"
        raise SpecError(f"{path} cannot be read: {error}", hint=hint) from error
    lines = csv.DictReader(text.splitlines())
    names = [name.strip() for name in lines.fieldnames or ()]
    lines.fieldnames = names
    for name in columns:
        if name not in names:
            hint = nearest(name, names) or f"its columns are {', '.join(names)}"
            raise SpecError(f"{path}:1: there is no column {name!r}", hint=hint)
    for row in lines:
        place = f"{path}:{lines.line_num}"
        cells = {name: (row[name] or "").strip() for name in names}
        for name in columns:
            if not cells[name]:
                raise SpecError(f"{place}: the cell of {name!r} is blank", hint="fill in a value")
        yield CsvRow(place, cells)


def parse_number(row: CsvRow, column: str) -> float:
    """Return the finite number of a cell.

    Raises:
        SpecError: the cell has none.
    """
    try:
        value = float(row.cells[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SpecError(f"{row.place}: {column} is {row.cells[column]!r}", hint="a number")
    return value


def parse_positive(row: CsvRow, column: str, *, never: Sequence[str] = ()) -> float:
    """Return the positive number of a cell, or infinity for a word of ``never``.

    Raises:
        SpecError: the cell has neither.
    """
    text = row.cells[column]
    if text.lower() in never:
        return math.inf
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        or_word = f", or {never[0].upper()}" if never else ""
        raise SpecError(f"{row.place}: {column} is {text!r}", hint=f"a number above 0{or_word}")
    return value
