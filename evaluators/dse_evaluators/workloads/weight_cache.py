"""Disk cache of trained weights, with atomic writes and validation on reading."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dse.resources.asset import cache_folder

Arrays = dict[str, NDArray[np.float32]]
Shapes = Mapping[str, tuple[int, ...]]

# Errors that numpy and zipfile raise for missing, truncated, altered or other files.
_DAMAGE = (OSError, ValueError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile)


def folder() -> Path:
    """Return the folder of cached weights, which is in the project's cache folder."""
    return cache_folder()


def load_or_make(name: str, shapes: Shapes, make: Callable[[], Arrays]) -> Arrays:
    """Return cached arrays by name; if the cache lacks them, make and store them.

    If the cache cannot be written, the arrays are returned all the same; the next process has to
    make them again.
    """
    path = folder() / f"{name}.npz"
    found = _read_arrays(path, shapes)
    if found is not None:
        return found
    arrays = make()
    try:
        _write(path, arrays)
    except OSError:
        return arrays
    return arrays


def _read_arrays(path: Path, shapes: Shapes) -> Arrays | None:
    """Return the arrays of a file; ``None`` if it is missing, damaged or has other shapes."""
    try:
        # Numpy does not close a damaged file that it opened itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except _DAMAGE:
        return None
    sound = {key: array.shape for key, array in arrays.items()} == dict(shapes) and all(
        array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values()
    )
    return arrays if sound else None


def write_text(path: Path, text: str) -> None:
    """Write a text file into the cache atomically.

    Raises:
        OSError: it cannot be written.
    """
    _write_whole(path, lambda file: file.write(text.encode()))


def _write(path: Path, arrays: Arrays) -> None:
    _write_whole(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


def _write_whole(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Write a file atomically: other processes see the old file or the complete new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".draft")
    try:
        with os.fdopen(handle, "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
