"""Examples in a table: numeric columns as inputs, one column as the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.generic.table_file import TableFile, read_table
from dse_evaluators.workloads.own.own_function import read_own_file
from dse_evaluators.workloads.own.own_splits import Examples

TABLES = (".csv", ".tsv", ".parquet", ".jsonl")


def read_columns(
    path: Path, settings: Mapping[str, Any], usual: Sequence[str]
) -> tuple[Examples, Examples | None, Examples | None]:
    """Return the inputs, the targets and the split names of a table's rows.

    Args:
        path: a CSV, TSV, Parquet or JSON-lines file.
        settings: ``inputs``, ``targets`` and ``split`` name columns; inputs may be a list.
        usual: names of the target's column, if ``targets`` does not name it.

    Raises:
        SpecError: the file is not a table, a column is missing, or a cell is not a number.
    """
    table = _read_json_lines(path) if path.suffix == ".jsonl" else read_table(str(path))
    target = settings.get("targets", next((name for name in usual if name in table.columns), None))
    split = settings.get("split", "split" if "split" in table.columns else None)
    named = settings.get("inputs")
    rest = [name for name in table.columns if name not in (target, split)]
    inputs = rest if named is None else [named] if isinstance(named, str) else list(named)
    for name in (*inputs, *(one for one in (target, split) if one is not None)):
        if name not in table.columns:
            hint = nearest(name, table.columns)
            raise SpecError(f"{path.name} has no column {name!r}", hint=hint)
    if not inputs:
        raise SpecError(f"{path.name} has no column left for inputs", hint="inputs: [a, b]")
    return (
        _inputs(table, inputs),
        None if target is None else _target(table, target),
        None if split is None else np.array(table.values(split), dtype=str),
    )


def _inputs(table: TableFile, names: Sequence[str]) -> Examples:
    first = table.values(names[0])
    if len(names) == 1 and isinstance(first[0], list):  # token ids, a list in each row
        if len({len(row) for row in first}) > 1:
            raise SpecError(f"{table.path}: rows of {names[0]} differ in length", hint="pad them")
        return np.array(first)
    return np.column_stack([table.numbers(name) for name in names]).astype(np.float32)


def _target(table: TableFile, name: str) -> Examples:
    """Return a column of targets, (r,): integers are classes, other numbers are values.

    Raises:
        SpecError: a cell is empty or is not a number.
    """
    values = table.numbers(name)
    stored = str(table.arrow.schema.field(name).type)
    return values.astype(np.int64) if "int" in stored else values.astype(np.float32)


def _read_json_lines(path: Path) -> TableFile:
    import pyarrow as pa
    from pyarrow import json

    from dse_evaluators.workloads.own.own_function import digest

    content = read_own_file(path)
    try:
        arrow = json.read_json(pa.BufferReader(content))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SpecError(f"{path} is not a table of JSON lines: {error}") from error
    return TableFile(
        path=path, columns=tuple(arrow.column_names), digest=digest(content), arrow=arrow
    )
