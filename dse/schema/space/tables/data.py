"""Parser of ``data:`` in a space file: records by key, a list of records, or a table file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dse.core.expressions.list_rules import Table
from dse.core.values import Value
from dse.errors import SpecError
from dse.schema.space.file import Stated
from dse.schema.space.parameters.domains import Amount
from dse.schema.space.tables.cells import CellColumn, Grid, cell, columns_of, is_number
from dse.schema.space.tables.grids import grid_of
from dse.schema.yaml.files import Files, resolve_path

MAX_ROWS = 100_000


def table_of(stated: Stated[Any], files: Files) -> tuple[Table, str]:
    """Return the lookup table of a ``data:`` entry, and a message on a repeated key.

    Records in a mapping are indexed by their keys; a table file by its first column, if its values
    are distinct texts or integers; anything else by row number from 0. If a value is repeated in a
    file's first column, the message names both locations, else it is empty. Looking up a blank cell
    is an error.

    Raises:
        SpecError: the entry is not a table, a cell cannot be parsed, or a column mixes types or
            units.
    """
    value = stated.value
    if isinstance(value, str):
        grid = grid_of(resolve_path(value, stated.source.path), files, named_at=stated.where)
        return _table(grid, None), _describe_repeat(grid)
    if isinstance(value, dict):
        return _table(_records(list(value.values()), list(value), stated), list(value)), ""
    if isinstance(value, list):
        keys = list(range(len(value)))
        return _table(_records(value, keys, stated), keys), ""
    raise SpecError(
        "data is a mapping of records, a list of records, or a file",
        hint="devices: {a100: {memory: 80 GiB}, ...}, or devices: devices.csv",
    )


def _records(records: Sequence[Any], keys: Sequence[Any], stated: Stated[Any]) -> Grid:
    if not records:
        raise SpecError("the table has no records")
    headers = dict[str, None]()
    for key, record in zip(keys, records, strict=True):
        if not isinstance(record, dict):
            hint = "write each as a mapping of its fields: {memory: 80 GiB, power: 400 W}"
            raise SpecError(f"the record {key!r} has no fields", where=stated.at(key), hint=hint)
        for header, one in record.items():
            headers.setdefault(str(header))
            if isinstance(one, dict | list):
                where = stated.at(key, header)
                raise SpecError(f"the field {header!r} of {key!r} is no single value", where=where)
    columns = tuple([record.get(header) for record in records] for header in headers)
    return Grid(
        headers=tuple(headers),
        columns=columns,
        place=lambda row, header: stated.at(keys[row], header),
        where=stated.where,
    )


def _table(grid: Grid, keys: list[Any] | None) -> Table:
    if grid.columns and len(grid.columns[0]) > MAX_ROWS:
        raise SpecError(f"the table has more than {MAX_ROWS:,} rows", where=grid.where)
    cells = [cell(key) for key in keys] if keys is not None else []
    columns = columns_of(grid, mixed=frozenset(grid.headers[:1]) if keys is None else frozenset())
    for column in columns:
        if "[" in column.name:
            spaced = column.name.replace("[", " [", 1)
            raise SpecError(
                f"the column {column.name!r} is no name",
                where=grid.where,
                hint=f"a unit needs a space before it: {spaced!r}",
            )
    plain = [one.value if isinstance(one, Amount) else one for one in cells]
    twice = next((key for place, key in enumerate(plain) if key in plain[:place]), None)
    if twice is not None:
        raise SpecError(f"the key {twice!r} appears twice", where=grid.where)
    return Table(
        keys=_keys(columns[0]) if keys is None else tuple(plain),
        columns={column.name: column.values for column in columns},
        units={column.name: column.unit for column in columns},
    )


def _describe_repeat(grid: Grid) -> str:
    """Return a message on the first repeated value in the first column; empty if all differ."""
    header, seen = grid.headers[0], dict[Any, int]()
    for row, key in enumerate(grid.columns[0]):
        if key in seen:
            places = f"{grid.place(seen[key], header)} and {grid.place(row, header)}"
            return (
                f"{header!r} is no key, for it repeats {key!r} ({places}); the rows are 0, 1, 2 ..."
            )
        seen[key] = row
    return ""


def _keys(first: CellColumn) -> tuple[Value, ...]:
    """Return the keys of the rows: the values of the first column, or else the row numbers.

    The first column is used if no cell is blank, all are distinct, and every number is an integer.
    """
    values = [value for value in first.values if value is not None]
    exact = all(not is_number(value) or value == int(value) for value in values)
    apart = len(set(values)) == len(first.values)
    return tuple(values) if exact and apart else tuple(range(len(first.values)))
