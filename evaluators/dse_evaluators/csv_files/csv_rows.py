"""Rows of users' CSV files, each with its line for messages."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dse.errors import SpecError, nearest

_SEPARATORS = {";": "semicolons", "\t": "tabs"}

_TIME_UNITS: Mapping[str, float] = {  # in seconds
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
}


class CsvRow(NamedTuple):
    """Texts of a row by column, and its place in the file."""

    place: str
    cells: Mapping[str, str]


class CsvTable(NamedTuple):
    """Names of the columns of a CSV file, and its rows."""

    names: tuple[str, ...]
    rows: Iterator[CsvRow]


def read_csv_rows(
    path: Path, columns: Sequence[str], *, example: str = "", part: Sequence[str] = ()
) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file; blank lines are left out.

    Args:
        path: the file; its first line has the names of the columns.
        columns: columns that the file must have, without blank cells.
        example: a header as it should be, for messages; ``columns`` by default.
        part: key path of the option that names the file, for messages.

    Raises:
        SpecError: the file cannot be read, has no rows or lacks a column, a row has another number
            of cells than the header, or a cell of ``columns`` is blank.
    """
    example = example or ",".join(columns)
    table = open_csv(path, example, part)
    check_columns(table.names, columns, path, example)
    for row in table.rows:
        for name in columns:
            if not row.cells[name]:
                problem = f"the cell of {name!r} is blank"
                raise SpecError(problem, where=row.place, hint="fill in a value")
        yield row


def open_csv(path: Path, example: str, part: Sequence[str] = ()) -> CsvTable:
    """Return the columns and rows of a CSV file of any columns; blank lines are left out.

    Args:
        path: the file; its first line has the names of the columns.
        example: a header as it should be, for messages.
        part: key path of the option that names the file, for messages.

    Raises:
        SpecError: the file cannot be read or, when rows are taken, has none, or a row has another
            number of cells than the header.
    """
    return parse_csv(read_text(path, example, part), path, example)


def parse_csv(text: str, path: Path, example: str) -> CsvTable:
    """Return the columns and rows of the text of a CSV file, as :func:`open_csv`."""
    lines = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    try:
        names = [name.strip() for name in lines.fieldnames or ()]
    except csv.Error as error:
        problem = f"it is no CSV: {error}"
        raise SpecError(problem, where=f"{path}:1", hint=f"a header such as {example}") from error
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        problem = f"there are two columns {repeated!r}"
        raise SpecError(problem, where=f"{path}:1", hint="rename one of them")
    lines.fieldnames = names
    return CsvTable(tuple(names), _read_rows(lines, path, example))


def _read_rows(lines: csv.DictReader[str], path: Path, example: str) -> Iterator[CsvRow]:
    empty = True
    try:
        for row in lines:
            place = f"{path}:{lines.line_num}"
            if None in row or None in row.values():
                problem = "the row has another number of cells than the header"
                raise SpecError(problem, where=place, hint="check commas")
            yield CsvRow(place, {name: text.strip() for name, text in row.items()})
            empty = False
    except csv.Error as error:
        where = f"{path}:{lines.reader.line_num}"
        raise SpecError(f"it is no CSV: {error}", where=where, hint="check quotes") from error
    if empty:
        raise SpecError("there are no rows", where=f"{path}:2", hint=f"rows of {example}")


def read_text(
    path: Path, example: str, part: Sequence[str] = (), *, most_bytes: float = math.inf
) -> str:
    """Return the text of a file, without a byte-order mark.

    Raises:
        SpecError: the file cannot be read or is larger than ``most_bytes``.
    """
    try:
        if path.stat().st_size > most_bytes:
            hint = f"a CSV file with the columns {example}"
            problem = f"{path} is larger than {most_bytes / 2**20:g} MiB"
            raise SpecError(problem, hint=hint, part=part)
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        beside = [one.name for one in path.parent.glob("*.csv")]
        hint = nearest(path.name, beside) or f"a CSV file with the columns {example}"
        raise SpecError(f"there is no file {path}", hint=hint, part=part) from error
    except (OSError, UnicodeError) as error:
        hint = f"a CSV file with the columns {example}"
        raise SpecError(f"{path} cannot be read: {error}", hint=hint, part=part) from error


def check_columns(names: Sequence[str], columns: Sequence[str], path: Path, example: str) -> None:
    """Check that a file has all of some columns.

    Raises:
        SpecError: a column is missing.
    """
    for mark, word in _SEPARATORS.items():
        if len(names) == 1 and mark in names[0]:
            problem = f"columns are separated by {word}: there is no column {columns[0]!r}"
            raise SpecError(problem, where=f"{path}:1", hint="separate them by commas")
    lacking = next((name for name in columns if name not in names), None)
    if lacking is not None:
        near = nearest(lacking, [name for name in names if name not in columns])
        hint = f"{near}; columns are {example}" if near else f"columns are {example}"
        raise SpecError(f"there is no column {lacking!r}", where=f"{path}:1", hint=hint)


def find_time_column(
    names: Sequence[str], path: Path, *, words: Sequence[str] = ("time", "latency", "duration")
) -> tuple[str, float]:
    """Return the column of a time that states its unit, such as ``time_us``, and that unit [s].

    Args:
        names: the columns of the file.
        path: the file, for messages.
        words: names that the time can have, without its unit.

    Raises:
        SpecError: there is no such column or more than one, or it states no known unit.
    """
    pattern = re.compile(
        rf"({'|'.join(words)})(?:[ _]?[\[(]?([a-zµμ]+)[\])]?)?", flags=re.IGNORECASE
    )
    found = [match for match in map(pattern.fullmatch, names) if match]
    units = f"{words[0]}_s, {words[0]}_ms, {words[0]}_us or {words[0]}_ns"
    where = f"{path}:1"
    if len(found) != 1:
        given = ", ".join(match.group() for match in found)
        problem = f"there are two times: {given}" if found else f"there is no {words[0]}"
        raise SpecError(problem, where=where, hint=f"one column with its unit: {units}")
    unit = (found[0].group(2) or "").lower()
    if unit not in _TIME_UNITS:
        problem = f"unknown: {unit}" if unit else "missing"
        problem = f"the unit of column {found[0].group()!r} is {problem}"
        raise SpecError(problem, where=where, hint=units)
    return found[0].group(), _TIME_UNITS[unit]


def parse_number(row: CsvRow, column: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return the finite number of a cell, which lies from ``low`` to ``high``.

    Raises:
        SpecError: the cell has none.
    """
    text = row.cells[column]
    value = _parse(text)
    if not math.isfinite(value):
        point = text.replace(",", ".")
        hint = "a number" if math.isnan(_parse(point)) else f"write {point}, with a point"
        raise SpecError(
            f"{column} is {text!r}, which is no finite number", where=row.place, hint=hint
        )
    if not low <= value <= high:
        raise SpecError(f"{column} is {text!r}", where=row.place, hint=_range_words(low, high))
    return value


def parse_whole(row: CsvRow, column: str, low: int, high: int = 2**53) -> int:
    """Return the integer of a cell, which lies from ``low`` to ``high``.

    Raises:
        SpecError: the cell has none.
    """
    value = parse_number(row, column, low, high)
    if value != round(value):
        hint = _range_words(low, high).replace("a number", "a whole number")
        raise SpecError(f"{column} is {row.cells[column]!r}", where=row.place, hint=hint)
    return int(value)


def parse_positive(row: CsvRow, column: str, *, never: Sequence[str] = ()) -> float:
    """Return the positive number of a cell, or infinity for a word of ``never``.

    Raises:
        SpecError: the cell has neither.
    """
    text = row.cells[column]
    if text.lower() in never:
        return math.inf
    if not 0 < _parse(text) < math.inf:
        or_word = f", or {never[0].upper()}" if never else ""
        hint = f"a number above 0{or_word}"
        raise SpecError(f"{column} is {text!r}", where=row.place, hint=hint)
    return float(text)


def _parse(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _range_words(low: float, high: float) -> str:
    if high >= 2**53:
        return f"a number from {low:g}"
    return f"a number from {low:g} to {high:g}"
