"""Parquet format of a study: one row per trial; one typed column per parameter and metric.

The file's metadata hold the specification and the other records (asks, events ...) as the same
lines as in the JSON lines format, and a SHA-256 that is the same in both formats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from dse.core.trial import Trial
from dse.core.trials import TIMES
from dse.core.values import Value
from dse.errors import StorageError
from dse.interop.archive.json_lines import (
    JsonLinesReader,
    fingerprint,
    header,
    lines_of,
    other_lines,
    trial_line,
)
from dse.interop.archive.record_codec import noun_of
from dse.interop.archive.stream import Portable
from dse.interop.archive.study_record import Record

MOST_ROWS = 50_000_000

MOST_BYTES = 1 << 35
"""Limits of the rows and bytes of a file, by its metadata; a larger file is refused."""

_ROWS = 10_000

_PIECE = 4096

_PIECES = 4
"""Trials converted to columns at once, and the number of such pieces in a row group."""

_LONGEST = 64 << 20
"""Largest size of the metadata, in bytes; Parquet readers refuse texts above 100 MB."""

_DAMAGED = "the file is damaged, or no Parquet file of a study"

_AGAIN = "export it again: dse studies export NAME -o FILE"

_FACTS = ("number", "told", "measured", "attempts", "worker")

_MAPS: Mapping[str, str] = {"design": "parameters", "metrics": "metrics", "spread": "metrics"}
"""Mapping fields of a trial, with one column per key, and the part of ``about`` with its unit."""

Place = tuple[str, str]
"""Identity of a column: the group (``trial``, ``failure``, ``design`` ...) and the name."""

_ALWAYS: tuple[Place, ...] = (
    *(("trial", name) for name in (*_FACTS, "cost_s", *TIMES, "state", "finished")),
    ("fault", "kind"),
    ("fault", "reason"),
)
"""Columns that every file has."""

_WHOLE = 1 << 63

_TYPES: Mapping[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}

_NUMPY = {pa.bool_(): np.bool_, pa.int64(): np.int64, pa.float64(): np.float64}


def write_parquet(record: Portable, file: BinaryIO) -> str:
    """Write a study to a Parquet file, and return the SHA-256 of its content.

    The trials are read twice; the first pass infers the column types.

    Raises:
        StorageError: the records besides the trials are too large for Parquet metadata.
    """
    head, others = header(record), _short(record)
    kinds, digest = dict[Place, ColumnKind](), hashlib.sha256(head.encode())
    for place in _ALWAYS:
        kinds[place] = ColumnKind()
    for trial, ended in record.placed_trials():
        digest.update(trial_line(trial, ended).encode())
        for place, value in _cells(trial, ended):
            kinds.setdefault(place, ColumnKind()).take(value)
    digest.update(others.encode())
    places = [*_ALWAYS, *sorted(kinds.keys() - set(_ALWAYS), key=_order)]
    kept = {"dse": head, "dse.lines": others, "dse.sha256": digest.hexdigest()}
    fields = [_field(place, kinds[place], record.about) for place in places]
    schema = pa.schema(fields, metadata=kept)
    with parquet.ParquetWriter(
        file, schema, compression="zstd", write_page_checksum=True
    ) as writer:
        for table in _tables(record, {place: kinds[place] for place in places}, schema):
            writer.write_table(table)
    return digest.hexdigest()


def _short(record: Portable) -> str:
    """Return the lines of all records besides the trials, as in the JSON lines format."""
    lines, length = list[str](), len(header(record))
    for _, line in other_lines(record):
        lines.append(line)
        length += len(line)
        if length > _LONGEST:
            raise StorageError(
                "the asks, events, ... of this study are too long for Parquet metadata",
                hint="write JSON lines: -o FILE.jsonl",
            )
    return "".join(lines)


def _tables(
    record: Portable, kinds: Mapping[Place, ColumnKind], schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield the trials as Arrow tables, each of which becomes one row group."""
    trials, pieces = record.placed_trials(), list[pa.Table]()
    while some := [dict(_cells(trial, ended)) for trial, ended in islice(trials, _PIECE)]:
        arrays = [kind.array([row.get(place) for row in some]) for place, kind in kinds.items()]
        pieces.append(pa.Table.from_arrays(arrays, schema=schema))
        if len(pieces) == _PIECES:
            yield pa.concat_tables(pieces).combine_chunks()
            pieces = []
    if pieces:
        yield pa.concat_tables(pieces).combine_chunks()


def read_parquet(path: Path) -> Record:
    """Read a study from a Parquet file.

    Raises:
        StorageError: the file is not an exported study, is damaged, or is too large.
    """
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            return _record(file, str(path))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{_DAMAGED}: {error}", where=str(path), hint=_AGAIN) from error


def _record(file: parquet.ParquetFile, where: str) -> Record:
    _check_size(file.metadata, where)
    kept = file.schema_arrow.metadata or {}
    if not {b"dse", b"dse.lines", b"dse.sha256"} <= kept.keys():
        raise StorageError("this Parquet file is no study that was exported", where=where)
    gathered = JsonLinesReader()
    gathered.read(kept[b"dse"], where)
    for line in kept[b"dse.lines"].splitlines(keepends=True):
        gathered.read(line, where)
    try:
        for trial, place in _trials(file):
            gathered.add(trial, place)
    except StorageError as error:
        raise error.at(where) from error
    record = gathered.record()
    if fingerprint(lines_of(record)).encode() != kept[b"dse.sha256"]:
        raise StorageError("the file is damaged: its check sum differs", where=where, hint=_AGAIN)
    return record


def _check_size(metadata: parquet.FileMetaData, where: str) -> None:
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    if metadata.num_rows > MOST_ROWS or sum(group.total_byte_size for group in groups) > MOST_BYTES:
        raise StorageError(
            f"the file is too large for a study: it has {metadata.num_rows:,} rows",
            where=where,
        )


def _cells(trial: Trial, ended: int | None) -> Iterator[tuple[Place, Value]]:
    """Yield the non-empty values of a trial, by column name."""
    for name in (*_FACTS, *TIMES):
        if (fact := getattr(trial, name)) is not None:
            yield ("trial", name), fact
    yield ("trial", "cost_s"), float(trial.cost_s)
    yield ("trial", "state"), trial.state.value
    if ended is not None:
        yield ("trial", "finished"), ended
    if trial.failure is not None:
        yield ("fault", "kind"), trial.failure.kind
        yield ("fault", "reason"), trial.failure.reason
    for of in _MAPS:
        for name, value in getattr(trial, of).items():
            yield (of, name), _exact(of, value)


def _field(place: Place, kind: ColumnKind, about: Mapping[str, Any]) -> pa.Field:
    """Return the Arrow field of a column, with its unit."""
    of, name = place
    if of not in _MAPS:
        unit = {"unit": "s"} if name in ("cost_s", *TIMES) else {}  # times: since 1970, UTC
        return kind.field(name if of == "trial" else f"{of}.{name}", {"of": of, **unit})
    unit = about.get(_MAPS[of], {}).get(name, {}).get("unit", "")
    facts = {"of": of, "name": json.dumps(name), "unit": unit}
    return kind.field(f"{of}.{_shown(name)}", facts)


def _order(place: Place) -> tuple[int, str]:
    """Return the sort key of a column: parameters, metrics, then standard errors, by name."""
    return list(_MAPS).index(place[0]), place[1]


def _exact(of: str, value: Value) -> Value:
    """Return metrics and standard errors as floats, parameter values unchanged.

    Parameter values 5 and 5.0 are distinct.
    """
    return value if of == "design" else float(value)


def _shown(name: str) -> str:
    """Return the name as valid UTF-8, as Arrow requires; the field's metadata hold the original."""
    return name.encode("utf-8", "replace").decode()


def _trials(file: parquet.ParquetFile) -> Iterator[tuple[Trial, int | None]]:
    fields = list(file.schema_arrow)
    readers = [reader(field) for field in fields]
    places = [_place(field) for field in fields]
    for batch in file.iter_batches(_ROWS):
        cells = [read(array) for read, array in zip(readers, batch.columns, strict=True)]
        for row in zip(*cells, strict=True):
            yield _trial(places, row)


def _place(field: pa.Field) -> tuple[str, str]:
    """Return which attribute of a trial (design, metrics ...) a column holds, and its key there."""
    of = fact(field, "of")
    if of == "trial":
        return "", field.name
    if of == "fault":
        return of, field.name.removeprefix("fault.")
    try:
        return of, str(json.loads(fact(field, "name")))
    except ValueError as error:
        raise StorageError(f"the column {field.name!r} has no valid metadata") from error


def _trial(
    places: Sequence[tuple[str, str]], row: Sequence[Value | None]
) -> tuple[Trial, int | None]:
    groups: dict[str, Any] = {"": {}, "fault": {}, **{of: {} for of in _MAPS}}
    for (of, name), value in zip(places, row, strict=True):
        if of not in groups:
            raise StorageError(f"{of!r} is not a part of a trial")
        if value is not None or not of:
            groups[of][name] = value
    facts = groups.pop("")
    place = facts.pop("finished", None)
    return noun_of(Trial, {**facts, **groups, "fault": groups["fault"] or None}), place


class ColumnKind:
    """Arrow type of a Parquet column, inferred from all values before any of them is written."""

    def __init__(self) -> None:
        self._types = set[type]()
        self._exact = True

    def take(self, value: Value) -> None:
        """Include a value in the inference of the type."""
        self._types.add(type(value))
        self._exact = self._exact and len(self._types) == 1 and _holds(value)

    def field(self, name: str, about: Mapping[str, str]) -> pa.Field:
        """Return the column's Arrow field, with the strings in ``about`` as its metadata."""
        facts = {**about, "as": "plain" if self._exact else "json"}
        kept = {key: word.encode("utf-8", "replace") for key, word in facts.items()}
        return pa.field(name, self._type, metadata=kept)

    def array(self, values: Sequence[Value | None]) -> pa.Array:
        """Return values of the column as an Arrow array of its inferred type."""
        if self._exact:
            return _array(values, self._type)
        texts = [None if value is None else json.dumps(value) for value in values]
        return _array(texts, self._type)

    @property
    def _type(self) -> pa.DataType:
        if not self._exact:
            return pa.string()
        (kind,) = self._types or {float}
        return _TYPES[kind]


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Build an array from its buffers: ``pa.array`` would import pandas, which takes 50 MB."""
    held = np.array([value is not None for value in values], dtype=bool)
    buffers = [pa.py_buffer(np.packbits(held, bitorder="little"))]
    if kind == pa.string():
        words = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
        buffers += [pa.py_buffer(ends), pa.py_buffer(b"".join(words))]
    else:
        plain: NDArray[Any] = np.array(
            [0 if value is None else value for value in values], dtype=_NUMPY[kind]
        )
        bits = np.packbits(plain, bitorder="little") if kind == pa.bool_() else plain
        buffers.append(pa.py_buffer(bits))
    return pa.Array.from_buffers(kind, len(values), buffers, int((~held).sum()))


def reader(field: pa.Field) -> Callable[[pa.Array], list[Value | None]]:
    """Return the function that decodes Arrow arrays of a column to parameter values."""
    if fact(field, "as") == "json":
        return lambda array: [_parse_cell(cell, field.name) for cell in array.to_pylist()]
    if field.type not in _TYPES.values():
        raise StorageError(f"the column {field.name!r} has the type {field.type}")
    return lambda array: array.to_pylist()


def fact(field: pa.Field, key: str) -> str:
    """Return the string under a key of the field's metadata; empty if there is none."""
    return (field.metadata or {}).get(key.encode(), b"").decode("utf-8", "replace")


def _holds(value: Value) -> bool:
    """Return whether the Arrow type of the value represents it exactly."""
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, bool | float) or -_WHOLE <= value < _WHOLE


def _parse_cell(cell: Any, name: str) -> Value | None:
    try:
        value = None if cell is None else json.loads(cell)
    except (RecursionError, TypeError, ValueError) as error:
        raise StorageError(f"the column {name!r} holds {str(cell)[:60]!r}") from error
    if value is not None and not isinstance(value, bool | int | float | str):
        raise StorageError(f"the column {name!r} holds {str(cell)[:60]!r}")
    return value
