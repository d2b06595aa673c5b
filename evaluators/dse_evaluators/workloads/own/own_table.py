"""Examples in a table: columns of numbers or of texts as inputs, one column as the target."""

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

WAYS = ("one-hot", "codes")
"""How texts become numbers: a column for each text, or its place in the order of the alphabet."""

_TEXTS = "as in texts: {city: one-hot}"


def read_columns(
    path: Path, settings: Mapping[str, Any], usual: Sequence[str]
) -> tuple[Examples, Examples | None, Examples | None]:
    """Return the inputs, the targets and the split names of a table's rows.

    Args:
        path: a CSV, TSV, Parquet or JSON-lines file.
        settings: ``inputs``, ``targets`` and ``split`` name columns; inputs may be a list.
            ``texts`` states how columns of texts become numbers, by the name of the column.
        usual: names of the target's column, if ``targets`` does not name it.

    Raises:
        SpecError: the file is not a table, a column is missing, or a cell is neither a number nor
            a text that becomes one.
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
    texts = _texts_of(settings, inputs, path)
    return (
        _inputs(table, inputs, texts),
        None if target is None else _target(table, target),
        None if split is None else np.array(table.values(split), dtype=str),
    )


def _texts_of(settings: Mapping[str, Any], inputs: Sequence[str], path: Path) -> Mapping[str, str]:
    """Return how columns of texts become numbers, by the name of the column.

    Raises:
        SpecError: a column is no input, or the conversion of its texts is unknown.
    """
    texts = settings.get("texts", {})
    if not isinstance(texts, Mapping) or not texts.keys() <= set(inputs):
        odd = next((one for one in texts if one not in inputs), "") if texts else ""
        hint = nearest(odd, inputs) if odd else _TEXTS
        raise SpecError(f"texts of {path.name} cannot be {texts!r}", hint=hint)
    for name, way in texts.items():
        if way not in WAYS:
            problem = f"the texts of {name!r} cannot become {way!r}"
            raise SpecError(problem, hint=nearest(str(way), WAYS))
    return texts


def _inputs(table: TableFile, names: Sequence[str], texts: Mapping[str, str]) -> Examples:
    first = table.values(names[0])
    if len(names) == 1 and isinstance(first[0], list):  # token ids, a list in each row
        if len({len(row) for row in first}) > 1:
            raise SpecError(f"{table.path}: rows of {names[0]} differ in length", hint="pad them")
        return np.array(first)
    for name in names:
        found = next((one for one in table.values(name) if isinstance(one, str)), None)
        if found is not None and name not in texts:
            raise SpecError(
                f"{table.path}: the column {name} has texts, such as {found!r}",
                hint=f"texts: {{{name}: one-hot}}, or texts: {{{name}: codes}}, or leave it out "
                "with inputs: [a, b]",
            )
    columns = [
        _text_columns(table, name, texts[name]) if name in texts else table.numbers(name)[:, None]
        for name in names
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def _text_columns(table: TableFile, name: str, way: str) -> Examples:
    """Return a column of texts as numbers, (r, k): one column, or one for each different text."""
    codes, known = _code_texts(table, name)
    return codes[:, None] if way == "codes" else np.eye(len(known))[codes]


def _code_texts(table: TableFile, name: str) -> tuple[Examples, list[Any]]:
    """Return the places of a column's values among the different ones, (r,), and these in order.

    Raises:
        SpecError: a cell is empty, or the column has texts and numbers.
    """
    values = table.values(name)
    if None in values:
        row = values.index(None) + 1
        raise SpecError(f"{table.path}, row {row}: {name} is empty", hint="fix the cell")
    if len({isinstance(one, str) for one in values}) > 1:
        raise SpecError(f"{table.path}: {name} has texts and numbers", hint="fix the column")
    known = sorted(set(values))
    return np.array([known.index(one) for one in values], dtype=np.int64), known


def _target(table: TableFile, name: str) -> Examples:
    """Return a column of targets, (r,): integers are classes, other numbers are values.

    Texts are classes in the order of the alphabet.

    Raises:
        SpecError: a cell is empty, or some are texts and some are numbers.
    """
    if any(isinstance(one, str) for one in table.values(name)):
        return _code_texts(table, name)[0]
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
