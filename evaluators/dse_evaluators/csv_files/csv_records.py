"""Rows and records of the CSV tables that the package ships."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

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
