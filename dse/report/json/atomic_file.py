"""Atomic file writing: the complete file or none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dse.errors import StorageError


def write_whole(path: Path, text: str | bytes | Iterable[str]) -> None:
    """Write a file atomically; ``text`` may be an iterable of parts of the content.

    Raises:
        StorageError: the path is a folder, or the file cannot be written.
    """
    if not path.name or path.is_dir():
        raise StorageError(f"{path} is a folder", hint="name a file in it")
    part = path.with_name(f".{path.name}.part")
    pieces = [text] if isinstance(text, str | bytes) else text
    try:
        with part.open("wb") as file:
            file.writelines(one.encode() if isinstance(one, str) else one for one in pieces)
        part.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
