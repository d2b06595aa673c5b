"""Export and import of a complete study as one file, in JSON lines or Parquet.

Files are untrusted: they are parsed as data only, check sums are verified, and nothing in them is
run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dse.errors import StorageError
from dse.interop.archive.json_lines import read_lines, write_lines
from dse.interop.archive.record import Record, check_record
from dse.interop.archive.stream import Portable

ENDINGS = (".jsonl", ".parquet")

_MAGIC = b"PAR1"


def read_archive(path: str | Path) -> Record:
    """Read a study from an archive file; the format is recognised by its contents.

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
    """Write the study to a file atomically, and return its SHA-256.

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
