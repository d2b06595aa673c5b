"""Where a study's files come from: the disk, the shipped library, or its own record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from dse.errors import SpecError, nearest
from dse.schema.source import Source, read, shown

LIBRARY = "library:"


@dataclass(slots=True)
class Files:
    """Reads files and remembers the text of each, so that a study can be rebuilt without them.

    ``kept`` holds the texts of a stored study; where it has a path the disk is not asked.
    """

    kept: Mapping[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def source(self, path: Path, *, named_at: str = "") -> Source:
        """The value of the file at ``path``.

        Raises:
            SpecError: the file cannot be read, or is no YAML of ours.
        """
        text = self.kept.get(str(path))
        if text is None:
            text = _text(path, named_at)
        self.texts[str(path)] = text
        return read(path, text)


def resolved(name: str, beside: Path) -> Path:
    """The path that a file's text means, seen from the file that says it.

    ``library:studies/quickstart.yaml`` is the shipped one, wherever the package is installed.
    """
    if name.startswith(LIBRARY):
        return library() / name.removeprefix(LIBRARY)
    return (beside.parent / name).resolve()


def library() -> Path:
    """The folder of the shipped spaces and studies: of the checkout if there is one."""
    package = Path(str(files("dse")))
    checkout = package.parent
    return checkout if (checkout / "studies").is_dir() else package / "library"


def _text(path: Path, named_at: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        beside = [p.name for p in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        raise SpecError(
            f"there is no file {shown(path)}", where=named_at, hint=nearest(path.name, beside)
        ) from error
    except UnicodeDecodeError as error:
        raise SpecError("the file is not UTF-8 text", where=shown(path)) from error
    except OSError as error:
        raise SpecError(
            f"{shown(path)} cannot be read: {error.strerror}", where=named_at
        ) from error
