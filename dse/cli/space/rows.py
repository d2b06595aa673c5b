"""Output of designs, one per row, as a table, JSON or CSV."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from dse.cli.options import csv_output, show_json
from dse.core.batch import Batch, Column
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.report.text.space_words import design_text, entries, value_text
from dse.report.text.terminal_table import (
    Lane,
    fits,
    print_fitting_tables,
    results_console,
    table_of,
)
from dse.system.terminal_text import visible

_BLOCK = 65_536

Row = dict[str, Value]
_T = TypeVar("_T")


def plain_rows(space: DesignSpace, batch: Batch) -> Iterator[Row]:
    """Yield the designs as plain mappings, with parameters in the order of the space."""
    names = [parameter.name for parameter in space.parameters]
    for row in zip(*(_cells(batch.columns[name], _same) for name in names), strict=True):
        yield {name: value for name, value in zip(names, row, strict=True) if value is not None}


def changes(space: DesignSpace, design: Mapping[str, Value], near: Batch) -> list[str]:
    """Return how each design of ``near`` differs from ``design``: ``tp 2 -> 4, dp 8 -> 4``."""
    cells: list[list[str]] = [[] for _ in range(len(near))]
    for parameter in space.parameters:
        word = partial(value_text, unit=parameter.unit)
        before = design.get(parameter.name)
        old = "absent" if before is None else word(before)
        for row, value in enumerate(_cells(near.columns[parameter.name], _same)):
            if value != before or type(value) is not type(before):
                new = "absent" if value is None else word(value)
                cells[row].append(f"{parameter.name} {old} -> {new}")
    return [", ".join(words) for words in cells]


def show_rows(space: DesignSpace, batch: Batch, output: str) -> None:
    """Print the designs: as a table, a JSON list, or CSV."""
    if output == "json":
        show_json(list(plain_rows(space, batch)))
    elif output == "csv":
        _write_csv(space, [batch])
    else:
        _print_table(space, list(plain_rows(space, batch)))


def stream(space: DesignSpace, limit: int | None, output: str) -> None:
    """Print all designs, or the first ``limit``, enumerated in blocks.

    Raises:
        DesignError: the space cannot be enumerated.
    """
    batches = _first(space, limit)
    if output == "csv":
        _write_csv(space, batches)
        return
    known = entries(space)
    for batch in batches:
        if output == "json":
            sys.stdout.writelines(_json_lines(space, batch))
        else:
            rows = plain_rows(space, batch)
            sys.stdout.writelines(f"{visible(design_text(known, row))}\n" for row in rows)


def _json_lines(space: DesignSpace, batch: Batch) -> Iterator[str]:
    """Yield a line with a JSON object for each design; each value of a domain is encoded once."""
    columns = []
    for parameter in space.parameters:
        key = json.dumps(parameter.name)
        pair = partial(_pair, key)
        columns.append(_cells(batch.columns[parameter.name], pair))
    for row in zip(*columns, strict=True):
        yield f"{{{', '.join(filter(None, row))}}}\n"


def _pair(key: str, value: Value) -> str:
    return f"{key}: {json.dumps(value)}"


def _first(space: DesignSpace, limit: int | None) -> Iterator[Batch]:
    left = limit
    for batch in space.enumerate(min(limit or _BLOCK, _BLOCK)):
        if left is None:
            yield batch
            continue
        yield batch if len(batch) <= left else batch.take(np.arange(left))
        left -= len(batch)
        if left <= 0:
            return


def _write_csv(space: DesignSpace, batches: Iterable[Batch]) -> None:
    """Write designs as CSV: a header of parameter names, then a line per design.

    An absent parameter is an empty field, an empty string a quoted one; Python's ``csv`` module
    writes the latter only from 3.12 on. Each value of a domain is encoded once.
    """
    names = [parameter.name for parameter in space.parameters]
    file = csv_output()
    file.write(",".join(map(_field, names)) + "\n")
    for batch in batches:
        columns = [_cells(batch.columns[name], _field) for name in names]
        lines = (",".join(field or "" for field in row) for row in zip(*columns, strict=True))
        file.write("".join(f"{line}\n" for line in lines))


def _field(value: Value) -> str:
    """Return the value as a field of CSV."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return float.__repr__(value) if isinstance(value, float) else str(value)
    quoted = value == "" or any(mark in value for mark in ',"\r\n')
    return '"' + value.replace('"', '""') + '"' if quoted else value


def _same(value: Value) -> Value:
    return value


def _cells(column: Column, cell: Callable[[Value], _T]) -> list[_T | None]:
    """Return ``cell(value)`` for each design of a column; ``None`` where the value is absent."""
    if column.codes is not None:
        known = [*map(cell, column.domain), None]
        return [known[code] for code in column.codes.tolist()]
    cells: list[_T | None] = [cell(value) for value in column.values.tolist()]
    if column.absent is not None:
        for row in np.flatnonzero(column.absent).tolist():
            cells[row] = None
    return cells


def _print_table(space: DesignSpace, rows: Sequence[Row]) -> None:
    """Print designs as table rows; if too wide for the terminal, transposed or as name=value."""
    console, known = results_console(), entries(space)
    upright = [
        Lane(heading=e.name, cells=[e.text(row) for row in rows], right=e.is_number) for e in known
    ]
    flat = [Lane(heading="parameter", cells=[entry.name for entry in known])]
    flat += [
        Lane(heading=str(place), cells=[entry.text(row) for entry in known], right=True)
        for place, row in enumerate(rows, 1)
    ]
    for lanes in (upright, flat):
        if fits(console, lanes):
            console.print(table_of(lanes))
            return
    key = Lane(heading="number", cells=[str(place) for place, _ in enumerate(rows, 1)], right=True)
    print_fitting_tables(console, key, [], upright)
