"""Columns of a CSV or Parquet file; errors name the file, the column and the line or row."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest

_CSV = (".csv", ".csv.gz", ".tsv")
_PARQUET = (".parquet", ".pq")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """Table read from a file, with a hash of the file as its version."""

    path: Path
    columns: tuple[str, ...]
    digest: str
    arrow: Any  # a pyarrow.Table

    def check_columns(self, what: str, names: Sequence[str]) -> None:
        """Check that the table has all these columns; ``what`` is the option that names them.

        Raises:
            SpecError: for the first missing column.
        """
        for name in names:
            if name not in self.columns:
                raise SpecError(
                    f"{self.path} has no column {name!r}, which {what} names",
                    hint=nearest(name, self.columns),
                )

    def values(self, name: str) -> list[Any]:
        """Return a column as plain Python values; an empty cell is ``None``.

        Raises:
            SpecError: a number in the column is not finite.
        """
        values: list[Any] = self.arrow.column(name).to_pylist()
        for row, value in enumerate(values):
            if isinstance(value, float) and not math.isfinite(value):
                raise self._wrong(name, row, f"is {value}, which is not finite")
        return values

    def numbers(self, name: str) -> Floats:
        """Return a column of finite numbers, (r,).

        Raises:
            SpecError: a cell is empty, not a number, or not finite.
        """
        values = self.values(name)
        for row, value in enumerate(values):
            if value is None:
                raise self._wrong(name, row, "is empty")
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self._wrong(name, row, f"is {value!r}, which is no number")
        return np.array(values, dtype=np.float64)

    def _wrong(self, name: str, row: int, what: str) -> SpecError:
        hint = "fix the cell, or remove the row"
        return SpecError(f"{locate_row(self.path, row)}: {name} {what}", hint=hint)


def locate_row(path: Path, row: int) -> str:
    """Return the place of a row of a table, counted from 0, as messages state it.

    It is the line of a CSV file, and the number of the row, from 1, of any other file.
    """
    if path.suffix not in _SEPARATORS:
        return f"{path}, row {row + 1}"
    with path.open(encoding="utf-8-sig", newline="") as lines:
        cells = csv.reader(lines, delimiter=_SEPARATORS[path.suffix])
        rows = (cells.line_num for one in cells if one)  # blank lines are no rows
        return f"{path}:{next(islice(rows, row + 1, None))}"


def read_table(file: str) -> TableFile:
    """Read a table from a file; the extension of its name gives the format.

    Raises:
        SpecError: the file does not exist, or is not a table with at least one row.
    """
    path = Path(file)
    if not path.is_file():
        beside = [one.name for one in path.parent.glob("*") if one.is_file()]
        raise SpecError(f"there is no file {file}", hint=nearest(path.name, beside))
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    arrow = _arrow(path)
    columns = tuple(arrow.column_names)
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise SpecError(f"{path} has two columns {twice!r}", hint="rename or remove one")
    _check_separator(path, columns)
    if not arrow.num_rows:
        raise SpecError(f"{path} has no rows", hint="the table needs at least one design")
    return TableFile(path=path, columns=columns, digest=digest, arrow=arrow)


def _arrow(path: Path) -> Any:
    import pyarrow as pa

    try:
        if path.name.endswith(_PARQUET):
            from pyarrow import parquet

            return parquet.read_table(path)
        if path.name.endswith(_CSV):
            return _csv(path)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        _check_lines(path)
        first = str(error).partition("\n")[0]
        raise SpecError(f"{path} cannot be read as a table: {first}") from error
    raise SpecError(
        f"{path} is neither CSV nor Parquet by its name",
        hint=f"known extensions: {', '.join(_CSV + _PARQUET)}",
    )


def _check_lines(path: Path) -> None:
    """Raise SpecError for the first line of a CSV file with another number of cells."""
    if path.suffix not in _SEPARATORS:
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            cells = csv.reader(lines, delimiter=_SEPARATORS[path.suffix])
            names = next(cells, [])
            _check_separator(path, names)
            for row in filter(None, cells):
                if len(row) != len(names):
                    problem = f"{path}:{cells.line_num}: {len(row)} cells in {len(names)} columns"
                    hint = "write decimal points, and put texts with separators in quotes"
                    raise SpecError(problem, hint=hint)
    except UnicodeError as error:
        raise SpecError(f"{path} is not in UTF-8", hint="save it as UTF-8") from error
    except csv.Error:
        return


def _check_separator(path: Path, names: Sequence[str]) -> None:
    """Raise SpecError if the only column of a file seems to be several."""
    if len(names) == 1 and ";" in names[0]:
        problem = f"{path}:1: columns are separated by semicolons"
        raise SpecError(problem, hint="separate them by commas, and write decimal points")


def _csv(path: Path) -> Any:
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        path,
        parse_options=arrow_csv.ParseOptions(delimiter=_SEPARATORS.get(path.suffix, ",")),
        convert_options=arrow_csv.ConvertOptions(null_values=[""], strings_can_be_null=True),
    )
