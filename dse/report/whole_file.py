"""A file that is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from dse.errors import StorageError


def write_whole(path: Path, text: str | bytes) -> None:
    """Write the file, whole or not at all.

    Raises:
        StorageError: it cannot be written.
    """
    if not path.name or path.is_dir():
        raise StorageError(f"{path} is a folder", hint="name a file in it")
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(text.encode() if isinstance(text, str) else text)
        part.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
