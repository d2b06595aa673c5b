"""Readers of table files: CSV, and Parquet through pyarrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dse.errors import SpecError
from dse.schema.space.tables.cells import Grid
from dse.schema.yaml.files import Files
from dse.schema.yaml.source import shown

_PARQUET = (".parquet", ".pq")
_ENDINGS = (".csv", *_PARQUET)

MAX_CELLS = 20_000_000


def grid_of(path: Path, files: Files, *, named_at: str) -> Grid:
    """Read a table file, CSV or Parquet by its suffix, without parsing the cells.

    Raises:
        SpecError: the file does not exist, is not a table, or has no rows.
    """
    suffix = path.suffix.lower()
    if suffix not in _ENDINGS:
        raise SpecError(
            f"{shown(path)} is neither CSV nor Parquet by its name",
            where=named_at,
            hint=f"known endings: {', '.join(_ENDINGS)}",
        )
    if suffix in _PARQUET:
        grid = _parquet(files.content(path, named_at=named_at), path)
    else:
        grid = _csv(files.text(path, named_at=named_at), path)
    if not grid.columns or not len(grid.columns[0]):
        raise SpecError("the table has no rows", where=f"{shown(path)}:1")
    return grid


def _csv(text: str, path: Path) -> Grid:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if row:
                if rows and len(row) != len(rows[0]):
                    raise _build_ragged_error(row, rows[0], f"{shown(path)}:{reader.line_num}")
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        where = f"{shown(path)}:{reader.line_num}"
        raise SpecError(f"this is no CSV: {error}", where=where) from error
    headers = tuple(rows[0]) if rows else ()
    return Grid(
        headers=headers,
        columns=tuple(zip(*rows[1:], strict=True)) if len(rows) > 1 else ((),) * len(headers),
        place=lambda row, _: f"{shown(path)}:{lines[row + 1]}",
        where=f"{shown(path)}:1",
    )


def _build_ragged_error(row: Sequence[str], header: Sequence[str], where: str) -> SpecError:
    return SpecError(
        f"this row has {len(row)} cells, and the header has {len(header)}",
        where=where,
        hint="leave a cell empty where there is no value, and quote a comma",
    )


def _parquet(content: bytes, path: Path) -> Grid:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        cells = file.metadata.num_rows * file.metadata.num_columns
        table = file.read() if cells <= MAX_CELLS else None
    except (pa.ArrowException, OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise SpecError(f"this is no Parquet table: {first}", where=shown(path)) from error
    if table is None:
        raise SpecError(f"the table has more than {MAX_CELLS:,} cells", where=shown(path))
    columns: list[list[Any]] = [column.to_pylist() for column in table.columns]
    return Grid(
        headers=tuple(table.column_names),
        columns=tuple(columns),
        place=lambda row, _: f"{shown(path)}, row {row + 1}",
        where=shown(path),
    )
