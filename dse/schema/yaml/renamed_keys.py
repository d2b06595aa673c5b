"""Keys of study files that were renamed: the old keys are still read, with a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dse.errors import SpecError
from dse.schema.yaml.source import Path_, SourceDocument
from dse.system.deprecation import UNTIL

ANY = "*"

RENAMED: Mapping[tuple[str, ...], str] = {
    ("prior",): "transfer_from",
    ("early",): "early_stopping",
    ("early_stopping", "at"): "rungs",
    ("budget", "gain"): "min_improvement",
    ("objectives", ANY, "as"): "label",
    ("evaluators", ANY, "replicates", "as"): "seed_input",
}
"""The present key for each old one. Outer keys come first: an inner path has their new names."""


OLD_KEYS = frozenset(path[0] for path in RENAMED if len(path) == 1)
"""Old keys of the file itself."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """Content of a study file in which old keys are replaced by their new names.

    ``warnings`` has a line for each old key, and ``mistakes`` an error for each key that occurs
    under both names. Line numbers are those of the file.
    """

    source: SourceDocument
    warnings: tuple[str, ...]
    mistakes: tuple[SpecError, ...]


def rename_old_keys(source: SourceDocument) -> Renamed:
    """Replace the old keys of a study file by their new names."""
    warnings, mistakes = list[str](), list[SpecError]()
    for old, new in RENAMED.items():
        for path in list(_find(source.value, old)):
            where, name = source.place(path), path[-1]
            if new in _follow(source.value, path[:-1]):
                problem = f"{name!r} is the old name of {new!r}, which is here as well"
                mistakes.append(SpecError(problem, where=where, hint="keep one of them"))
                source = source.without([path])
            else:
                now = f"'{name}' is called '{new}' now"
                warnings.append(f"{where}: {now}; the old key is read until version {UNTIL}")
                source = _rename(source, path, (*path[:-1], new))
    return Renamed(source, tuple(warnings), tuple(mistakes))


def _find(value: Any, old: Sequence[str], above: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of the keys in the document that match an old key's path pattern."""
    key, inner = old[0], old[1:]
    if key == ANY:
        keys: Sequence[str | int] = list(value) if isinstance(value, dict) else ()
        keys = range(len(value)) if isinstance(value, list) else keys
    else:
        keys = [key] if isinstance(value, dict) and key in value else ()
    for each in keys:
        if inner:
            yield from _find(value[each], inner, (*above, each))
        else:
            yield (*above, each)


def _follow(value: Any, path: Path_) -> Any:
    for part in path:
        value = value[part]
    return value


def _rename(source: SourceDocument, old: Path_, new: Path_) -> SourceDocument:
    """Return the source document with one key renamed; its position does not change."""
    size = len(old)
    lines = source.lines and {
        (*new, *path[size:]) if path[:size] == old else path: line
        for path, line in source.lines.items()
    }
    return SourceDocument(source.path, _rename_in(source.value, old, str(new[-1])), lines)


def _rename_in(value: Any, path: Path_, new: str) -> Any:
    """Return a copy of the value with the last key of the path replaced by the new key."""
    first, inner = path[0], path[1:]
    if isinstance(value, list):
        return [_rename_in(v, inner, new) if place == first else v for place, v in enumerate(value)]
    return {
        (new if key == first and not inner else key): (
            _rename_in(held, inner, new) if key == first and inner else held
        )
        for key, held in value.items()
    }
