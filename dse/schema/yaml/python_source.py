"""Conversion of a Python mapping to a source document, as if parsed from a YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from dse.errors import SpecError
from dse.schema.yaml.source import MAX_DEPTH, Path_, SourceDocument

MAX_PARTS = 2_000_000
"""Maximum number of values in a mapping."""


def source_of(value: Mapping[str, Any], beside: Path | None = None) -> SourceDocument:
    """Convert a mapping to a source document; error locations are key paths instead of lines.

    Args:
        value: the mapping; NumPy values, paths and sequences are converted to plain values.
        beside: the file or folder that relative paths refer to; by default the working directory.

    Raises:
        SpecError: the mapping contains a value that YAML cannot express, or is too large or too
            deep.
    """
    if not isinstance(value, Mapping):
        raise SpecError("a space is a mapping of keys to values")
    here = (beside or Path.cwd()).resolve()
    path = here / "space" if here.is_dir() else here
    return SourceDocument(path, _Plain().value(value, ()), None)


class _Plain:
    """Recursive converter to plain values, as parsed from YAML.

    ``parts`` counts the values, to stop at an object that contains itself.
    """

    def __init__(self) -> None:
        self.parts = 0

    def value(self, value: Any, path: Path_) -> Any:
        self.parts += 1
        if len(path) > MAX_DEPTH:
            raise SpecError(f"nested deeper than {MAX_DEPTH} levels", where=_place(path))
        if self.parts > MAX_PARTS:
            raise SpecError(f"the space has more than {MAX_PARTS:,} values", where=_place(path))
        if isinstance(value, np.generic | np.ndarray):
            value = value.tolist()
        if isinstance(value, PurePath):
            return str(value)
        if value is None or isinstance(value, bool | int | float | str):
            return _scalar(value, path)
        if isinstance(value, Mapping):
            return {_key(key, path): self.value(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, Sequence):
            return [self.value(one, (*path, place)) for place, one in enumerate(value)]
        kind = type(value).__name__
        raise SpecError(
            f"a {kind} cannot be written in a space file",
            where=_place(path),
            hint="write numbers and texts; a rule is a text: 'tile * stages <= 512'",
        )


def _scalar(value: Any, path: Path_) -> Any:
    """Convert a scalar of a subclass to the built-in type: a ``StrEnum`` member to its string."""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if not np.isfinite(value):
        raise SpecError(f"{value} is no finite number", where=_place(path))
    return float(value)


def _key(key: Any, path: Path_) -> str:
    if isinstance(key, bool) or not isinstance(key, str | int | float):
        raise SpecError(f"the key {key!r} is no text", where=_place(path))
    return str(key)


def _place(path: Path_) -> str:
    return ".".join(str(part) for part in path) or "the space"
