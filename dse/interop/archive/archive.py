"""Complete study in one file: lines of JSON, or Parquet.

A file may come from a stranger: it is read as data, a line at a time, and each line and the whole
have a check sum. Nothing in it is run.
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
    """Return the study that a file holds, whatever the file's name.

    Raises:
        StorageError: there is none, or it is damaged; with the line where there are lines.
    """
    file = Path(path)
    if file.is_fifo():  # it would be waited for as long as nobody writes to it
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
    """Write the study, whole or not at all; its SHA-256 is returned.

    Raises:
        StorageError: the file cannot be written, or its name ends in neither form's word.
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
        f"in which form shall {file} be?", hint=f"let its name end in {' or '.join(ENDINGS)}"
    )


def _read_parquet(file: Path) -> Record:
    from dse.interop.archive.parquet import read_parquet

    return read_parquet(file)
