"""Trained weights on disk: written at once or not at all, and doubted when read."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dse.resources.asset import cache_folder

Arrays = dict[str, NDArray[np.float32]]
Shapes = Mapping[str, tuple[int, ...]]

# What numpy and zipfile raise for files that are missing, cut, altered or something else.
_DAMAGE = (OSError, ValueError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile)


def folder() -> Path:
    """Return the folder of the weights.

    It is the cache folder, with all else that can be made or fetched again.
    """
    return cache_folder()


def load_or_make(name: str, shapes: Shapes, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays of that name, made if there is no sound file of them.

    A cache that cannot be written costs the next process its time, and nothing else.
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
    """Return the arrays of the file; ``None`` if it is missing, damaged or of other shapes."""
    try:
        # Numpy leaves a damaged file open that it opened itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except _DAMAGE:
        return None
    sound = {key: array.shape for key, array in arrays.items()} == dict(shapes) and all(
        array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values()
    )
    return arrays if sound else None


def _write(path: Path, arrays: Arrays) -> None:
    """All or nothing: another process sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".draft")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
