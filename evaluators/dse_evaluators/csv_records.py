"""CSV files: rows and records of shipped tables, and rows of users' files with their place."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dse.errors import SpecError, nearest

Record = TypeVar("Record")

_PARSERS: Mapping[str, Callable[[str], Any]] = {  # by the annotation of a field
    "str": str,
    "int": int,
    "float": float,
    "bool": {"yes": True, "no": False}.__getitem__,
    "tuple[str, ...]": lambda text: tuple(text.split(" | ")),
}


def read_rows(path: Path) -> tuple[Mapping[str, str], ...]:
    """Return the rows of a CSV file, each as texts by the names of the header."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def read_records(path: Path, kind: type[Record]) -> dict[str, Record]:
    """Return the rows of a CSV file as dataclass instances, by the text in the first column.

    Args:
        path: a file whose header names fields of ``kind``; columns without a field are comments.
        kind: a dataclass with postponed annotations of its fields. A blank cell leaves a field at
            its default; a tuple of texts is separated by ``|`` between blanks.
    """
    return {next(iter(row.values())): record_of(row, kind) for row in read_rows(path)}


def record_of(row: Mapping[str, str], kind: type[Record], **other: Any) -> Record:
    """Return a row of texts as an instance of a dataclass.

    Args:
        row: texts by column, as :func:`read_rows` returns them.
        kind: a dataclass with postponed annotations of its fields.
        **other: values of fields that the row does not have as one cell.
    """
    cells = {
        field.name: _parser_of(str(field.type))(row[field.name])
        for field in fields(kind)  # type: ignore[arg-type]  # mypy has no type for dataclasses
        if row.get(field.name) and field.name not in other
    }
    return kind(**cells, **other)


def _parser_of(annotation: str) -> Callable[[str], Any]:
    """Return the parser of a field: that of the first of its types which a cell can state."""
    return next(_PARSERS[part] for part in annotation.split(" | ") if part in _PARSERS)


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
