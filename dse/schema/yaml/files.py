"""Sources of a study's files: the disk, the shipped library, or its own record."""

from __future__ import annotations

import base64
import binascii
import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse.schema.yaml.python_source import source_of
from dse.schema.yaml.source import MAX_BYTES, SourceDocument, parse_yaml, shown
from dse.schema.yaml.writer import yaml_text

LIBRARY = "library:"

MAX_TABLE_BYTES = 1 << 26
"""A table of data may be larger than what a person writes, and is kept with the study too."""

_PACKED = "base64:"
_SPECS = (".yaml", ".yml")
_SHOWN = 10
_NO_YAML = (".py", ".ipynb", ".sh", ".db", ".csv", ".parquet", ".jsonl", ".html", ".onnx")


@dataclass(slots=True)
class Files:
    """Reads files and remembers the text of each, so that a study can be rebuilt without them.

    ``kept`` holds the texts of a stored study; where it has a path the disk is not asked. A file
    that is no text, such as a Parquet table, is kept as base64. ``documents`` are files that were
    never written: a Python program gives what they would say.
    """

    kept: Mapping[str, str] = field(default_factory=dict)
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def source(self, path: Path, *, named_at: str = "") -> SourceDocument:
        """The value of the YAML file at ``path``.

        Raises:
            SpecError: the file cannot be read, or is no YAML of ours.
        """
        document = self.documents.get(str(path))
        if document is None:
            _check_ending(path, named_at)
            return parse_yaml(path, self._load_text(path, named_at, MAX_BYTES))
        source = source_of(document, path)
        self.texts[str(path)] = yaml_text(source.value)
        return source

    def text(self, path: Path, *, named_at: str = "") -> str:
        """The text of a table's file.

        Raises:
            SpecError: the file cannot be read, or is no text.
        """
        return self._load_text(path, named_at, MAX_TABLE_BYTES)

    def content(self, path: Path, *, named_at: str = "") -> bytes:
        """The bytes of a table's file.

        Raises:
            SpecError: the file cannot be read.
        """
        packed = self.kept.get(str(path))
        if packed is None:
            packed = _PACKED + base64.b64encode(_bytes(path, named_at, MAX_TABLE_BYTES)).decode()
        self.texts[str(path)] = packed
        try:
            return base64.b64decode(packed.removeprefix(_PACKED), validate=True)
        except binascii.Error as error:
            raise SpecError(f"what was kept of {shown(path)} is damaged", where=named_at) from error

    def _load_text(self, path: Path, named_at: str, most: int) -> str:
        text = self.kept.get(str(path))
        if text is None:
            try:
                text = _bytes(path, named_at, most).decode("utf-8-sig")
            except UnicodeDecodeError as error:
                raise SpecError("the file is not UTF-8 text", where=f"{shown(path)}:1") from error
        self.texts[str(path)] = text
        return text


def resolve_path(name: str, beside: Path) -> Path:
    """Return the path that a text names, relative to the file that contains the text.

    ``library:studies/quickstart.yaml`` is the shipped one, wherever the package is installed.

    Raises:
        SpecError: the text can name no file.
    """
    if not name.strip() or "\0" in name:
        raise SpecError(f"{name!r} names no file")
    if name.startswith(LIBRARY):
        return _find_library_file(name.removeprefix(LIBRARY))
    try:
        return (beside.parent / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise SpecError(f"{name[:60]!r} names no file: {error}") from error


def _check_ending(path: Path, named_at: str) -> None:
    """Raise SpecError for a file that is no YAML by its name, such as a program."""
    if path.suffix.lower() in _NO_YAML and path.is_file():
        hint = "name a study or a space file, written in YAML"
        raise SpecError(f"{shown(path)} is no YAML file", where=named_at, hint=hint)


def library() -> Path:
    """The folder of the shipped spaces and studies: of the checkout if there is one."""
    package = Path(str(files("dse")))
    checkout = package.parent
    return checkout if (checkout / "studies").is_dir() else package / "library"


def _find_library_file(name: str) -> Path:
    """Return the file of the library. Raises SpecError for one that is not inside it."""
    path = library() / name
    if not Path(os.path.normpath(path)).is_relative_to(library()):
        hint = "library:spaces/..., or library:studies/..."
        raise SpecError(f"{LIBRARY + name[:60]!r} leaves the library", hint=hint)
    return path


def _bytes(path: Path, named_at: str, most: int) -> bytes:
    """Return the content of the file; a device, which would never end, is refused."""
    try:
        if path.exists() and not path.is_file():
            raise _no_file(path, named_at)
        if path.stat().st_size > most:
            limit = f"{most >> 20} MiB" if most >= 1 << 21 else f"{most >> 10} KiB"
            raise SpecError(f"the file is larger than {limit}", where=f"{shown(path)}:1")
        return path.read_bytes()
    except FileNotFoundError as error:
        problem = f"there is no file {shown(path)}"
        raise SpecError(problem, where=named_at, hint=_beside(path)) from error
    except OSError as error:
        problem = f"{shown(path)} cannot be read: {error.strerror}"
        raise SpecError(problem, where=named_at) from error


def _beside(path: Path) -> str:
    """The file of the same kind beside it whose name is closest; a folder that is missing."""
    if not path.parent.is_dir():
        return f"there is no folder {shown(path.parent)} either"
    kinds = (path.suffix,) if path.suffix in (".csv", ".parquet") else _SPECS
    return nearest(path.name, [one.name for one in path.parent.iterdir() if one.suffix in kinds])


def _no_file(path: Path, named_at: str) -> SpecError:
    """Return the error for a folder, with the files in it, or for a device."""
    if not path.is_dir():
        return SpecError(f"{shown(path)} is no file", where=named_at)
    inside = sorted(shown(one) for one in path.iterdir() if one.suffix in _SPECS)
    hint = f"name a file in it: {', '.join(inside[:_SHOWN])}" if inside else "name a file"
    return SpecError(f"{shown(path)} is a folder", where=named_at, hint=hint)
