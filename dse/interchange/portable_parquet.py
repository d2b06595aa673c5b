"""A study as one Parquet file: a row for each trial, a typed column for each name, with units.

What is no trial (the spec, asks, events ...) stands in the file's metadata as the same lines that
the other form has, and so does the SHA-256: a study has one, whatever the form of its file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from dse.core.trial import Trial
from dse.core.trials import TIMES
from dse.core.values import Value
from dse.errors import StorageError
from dse.interchange.portable_columns import column, fact, reader
from dse.interchange.portable_lines import (
    Gathered,
    fingerprint,
    header,
    other_lines,
    trial_lines,
)
from dse.interchange.portable_record import Record
from dse.interchange.portable_words import noun_of

MOST_ROWS = 50_000_000
MOST_BYTES = 1 << 35
"""A file that says that it holds more is not opened."""

_ROWS = 10_000
_LONGEST = 64 << 20
"""Bytes of metadata: Parquet's own readers take no text longer than 100 MB."""

_DAMAGED = "the file is damaged, or no Parquet file of a study"
_AGAIN = "export it again: dse studies export NAME -o FILE"
_FACTS = ("number", "told", "measured", "attempts", "worker")
_MAPS: Mapping[str, str] = {"design": "parameters", "metrics": "metrics", "spread": "metrics"}
"""The fields of a trial that become a column for each name, and where its unit is told."""


def write_parquet(record: Record, file: BinaryIO) -> str:
    """Write the study; its SHA-256 is returned.

    Raises:
        StorageError: it says more beside its trials than Parquet can hold.
    """
    head, others = header(record), "".join(other_lines(record))
    if len(head) + len(others) > _LONGEST:
        raise StorageError(
            "what this study remembers beside its trials is too long for Parquet",
            hint="write lines of JSON: -o FILE.jsonl",
        )
    digest = fingerprint(chain([head], trial_lines(record), [others]))
    kept = {"dse": head, "dse.lines": others, "dse.sha256": digest}
    columns = list(_columns(record))
    schema = pa.schema([field for field, _ in columns], metadata=kept)
    table = pa.Table.from_arrays([array for _, array in columns], schema=schema)
    parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
    return digest


def read_parquet(path: Path) -> Record:
    """The study of a Parquet file.

    Raises:
        StorageError: it is none, is damaged, or says that it is larger than any study.
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
    gathered = Gathered()
    gathered.read(kept[b"dse"], where)
    for line in kept[b"dse.lines"].splitlines(keepends=True):
        gathered.read(line, where)
    try:
        for trial, place in _trials(file):
            gathered.add(trial, place)
    except StorageError as error:
        raise error.at(where) from error
    record = gathered.record()
    lines = chain([header(record)], trial_lines(record), other_lines(record))
    if fingerprint(lines).encode() != kept[b"dse.sha256"]:
        raise StorageError("the file is damaged: its check sum differs", where=where, hint=_AGAIN)
    return record


def _check_size(told: parquet.FileMetaData, where: str) -> None:
    groups = [told.row_group(place) for place in range(told.num_row_groups)]
    if told.num_rows > MOST_ROWS or sum(group.total_byte_size for group in groups) > MOST_BYTES:
        raise StorageError(
            f"the file says that it holds {told.num_rows:,} rows; no study is as large",
            where=where,
        )


def _columns(record: Record) -> Iterator[tuple[pa.Field, pa.Array]]:
    trials = record.trials
    for name in _FACTS:
        yield column(name, [getattr(trial, name) for trial in trials], {"of": "trial"})
    yield column("cost_s", [float(trial.cost_s) for trial in trials], {"of": "trial", "unit": "s"})
    for name in TIMES:  # seconds since 1970, UTC
        yield column(name, [getattr(trial, name) for trial in trials], {"of": "trial", "unit": "s"})
    yield column("state", [trial.state.value for trial in trials], {"of": "trial"})
    places = {number: place for place, number in enumerate(record.finished_order)}
    yield column("finished", [places.get(trial.number) for trial in trials], {"of": "trial"})
    for part in ("kind", "reason"):
        yield column(
            f"fault.{part}", [getattr(t.fault, part, None) for t in trials], {"of": "fault"}
        )
    for of, names in _MAPS.items():
        for name in sorted({name for trial in trials for name in getattr(trial, of)}):
            unit = record.about.get(names, {}).get(name, {}).get("unit", "")
            values = [_exact(of, getattr(trial, of).get(name)) for trial in trials]
            told = {"of": of, "name": json.dumps(name), "unit": unit}
            yield column(f"{of}.{_shown(name)}", values, told)


def _exact(of: str, value: Value | None) -> Value | None:
    """What a metric is, 5 too, is a float; a design's 5 and 5.0 are two."""
    return value if value is None or of == "design" else float(value)


def _shown(name: str) -> str:
    """The name as Arrow can hold it; what it is exactly, the field's metadata tell."""
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
    """To which field of a trial the column belongs, and under which name."""
    of = fact(field, "of")
    if of == "trial":
        return "", field.name
    if of == "fault":
        return of, field.name.removeprefix("fault.")
    try:
        return of, str(json.loads(fact(field, "name")))
    except ValueError as error:
        raise StorageError(f"the column {field.name!r} does not say what it is") from error


def _trial(
    places: Sequence[tuple[str, str]], row: Sequence[Value | None]
) -> tuple[Trial, int | None]:
    told: dict[str, Any] = {"": {}, "fault": {}, **{of: {} for of in _MAPS}}
    for (of, name), value in zip(places, row, strict=True):
        if of not in told:
            raise StorageError(f"{of!r} is nothing that a trial has")
        if value is not None or not of:
            told[of][name] = value
    facts = told.pop("")
    place = facts.pop("finished", None)
    return noun_of(Trial, {**facts, **told, "fault": told["fault"] or None}), place
