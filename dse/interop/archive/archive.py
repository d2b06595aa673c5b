"""Export and import of a complete study as one file, in JSON lines or Parquet.

Files are untrusted: they are parsed as data only, check sums are verified, and nothing in them is
run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dse.core.trial import History
from dse.errors import StorageError, StudyError
from dse.interop.archive.json_lines import read_lines, write_lines
from dse.interop.archive.stream import Portable
from dse.interop.archive.study_record import Record, check_record
from dse.protocols import Storage
from dse.storage.trust import add_import_mark, remove_import_mark, without_trust

ENDINGS = (".jsonl", ".parquet")

_MAGIC = b"PAR1"


def read_archive(path: str | Path) -> Record:
    """Read a study from an archive file; the format is recognised by the file's contents.

    Raises:
        StorageError: the file does not hold a study, or is damaged; in JSON lines, with the line.
    """
    file = Path(path)
    if file.is_fifo():  # opening it would block until another process writes to it
        raise StorageError(f"{file} cannot be read: it is a pipe", hint="write it to a file first")
    try:
        with file.open("rb") as opened:
            start = opened.read(len(_MAGIC))
        record = _read_parquet(file) if start == _MAGIC else read_lines(file)
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror}") from error
    try:
        check_record(record)
    except StorageError as error:
        raise error.at(str(file)) from error
    return record


def write(record: Portable, path: str | Path) -> str:
    """Write a study to an archive file atomically, and return the SHA-256 of its content.

    Raises:
        StorageError: the file cannot be written, or its name has neither format's suffix.
    """
    file = Path(path)
    writer = _writer(file)
    part = file.with_name(f".{file.name}.part")
    try:
        with part.open("wb") as opened:
            digest = writer(record, opened)
        part.replace(file)
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return digest


def _writer(file: Path) -> Callable[[Portable, BinaryIO], str]:
    if file.suffix == ".jsonl":
        return write_lines
    if file.suffix == ".parquet":
        from dse.interop.archive.parquet import write_parquet

        return write_parquet
    raise StorageError(
        f"the format of {file} is unknown", hint=f"use the suffix {' or '.join(ENDINGS)}"
    )


def _read_parquet(file: Path) -> Record:
    from dse.interop.archive.parquet import read_parquet

    return read_parquet(file)


def restore(
    record: Record, storage: Storage, *, name: str | None = None, trusted: bool = False
) -> None:
    """Create a study with the complete contents of a record.

    Args:
        record: the record, possibly from an untrusted source.
        storage: target storage.
        name: name of the study; by default the record's name.
        trusted: the study may be run at once; otherwise only after :func:`dse.storage.trust.trust`.

    Raises:
        StudyError: there is a study of that name already.
    """
    study = record.study if name is None else name
    if study in storage.studies():
        raise StudyError(
            f"there is a study {study!r} already", hint="take another name: --name NAME"
        )
    history = History(
        trials=record.trials,
        order=record.finished_order,
        events=without_trust(record.events),
        asks=record.asks,
        attempts=record.attempts,
        reports=record.reports,
        drivers=record.drivers,
    )
    spec = remove_import_mark(record.spec) if trusted else add_import_mark(record.spec)
    storage.create(study, spec, history)
