"""YAML parser that records the line of every value for error messages.

The subset is deliberately small: no tags, anchors or aliases, and one document; plain scalars
follow YAML 1.2 (``no`` and ``on`` are texts). A file that is too long or too deep is rejected
before any value is built from it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dse.errors import SpecError

MAX_BYTES = 1 << 20

MAX_DEPTH = 30

Path_ = tuple[str | int, ...]

_INT = re.compile(r"[-+]?(0|[1-9][0-9_]{0,17})$")

_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")

_WORDS: Mapping[str, Any] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "~": None,
    "": None,
}

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser if available: it is sixteen times as fast and yields the same events."""

_OPEN = {"{": "}", "[": "]"}

_QUOTED_KEY = re.compile(r"^\s*- (['\"]).*?\1\s*\S")

_KEY = re.compile(r"^\s*(?:- )?[\w.-]+:(?=[^\s/])")

_NO_COLON = re.compile(r"^\s*(?:- )?[\w.-]+ +[{\[]")

_UNQUOTED = re.compile(r":\s+([%@`])")


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """Parsed content of a YAML file, with the line number of each value by its key path.

    A document built in Python has no line numbers (``None``); ``path`` then only resolves relative
    paths.
    """

    path: Path
    value: Any
    lines: Mapping[Path_, int] | None

    def place(self, path: Sequence[str | int] = ()) -> str:
        """Return the location ``file:line`` of a value, or of what encloses it if it is missing.

        Without line numbers, the result is the dotted key path.
        """
        known = tuple(path)
        if self.lines is None:
            return ".".join(str(part) for part in known) or "the space"
        while known not in self.lines and known:
            known = known[:-1]
        return f"{shown(self.path)}:{self.lines.get(known, 1)}"

    def inner(self, path: Path_) -> SourceDocument:
        """Return the value at a key path as a source document with its line numbers."""
        value = self.value
        for part in path:
            value = value[part]
        if self.lines is None:
            return SourceDocument(self.path, value, None)
        size = len(path)
        lines = {own[size:]: line for own, line in self.lines.items() if own[:size] == path}
        return SourceDocument(self.path, value, lines)

    def without(self, paths: Iterable[Path_]) -> SourceDocument:
        """Return the document without the values at these paths; line numbers are kept."""
        gone: dict[Path_, set[str | int]] = {}
        for path in paths:
            gone.setdefault(path[:-1], set()).add(path[-1])
        above = {parent[:size] for parent in gone for size in range(len(parent) + 1)}
        lines = None if self.lines is None else _shift_lines(self.lines, gone)
        return SourceDocument(self.path, _prune_value(self.value, (), gone, above), lines)


def _prune_value(
    value: Any, path: Path_, gone: Mapping[Path_, Set[str | int]], above: Set[Path_]
) -> Any:
    """Return a copy of a nested value without the keys and list items in ``gone``.

    Args:
        value: the value at ``path``.
        path: its key path.
        gone: the removed keys or indices, by the path of their container.
        above: the paths of these containers and of all that enclose them.
    """
    if path not in above:
        return value
    keys = gone.get(path, frozenset())
    if isinstance(value, dict):
        return {
            k: _prune_value(v, (*path, k), gone, above) for k, v in value.items() if k not in keys
        }
    if isinstance(value, list):
        return [
            _prune_value(v, (*path, k), gone, above) for k, v in enumerate(value) if k not in keys
        ]
    return value


def _shift_lines(
    lines: Mapping[Path_, int], gone: Mapping[Path_, Set[str | int]]
) -> dict[Path_, int]:
    """Return the line numbers by key path after removals, which shift the indices of list items."""
    places = {
        holder: sorted(key for key in keys if isinstance(key, int)) for holder, keys in gone.items()
    }
    found: dict[Path_, int] = {}
    for path, line in lines.items():
        left = list[str | int]()
        for size, part in enumerate(path):
            holder = path[:size]
            if part in gone.get(holder, ()):
                break
            before = bisect_left(places.get(holder, ()), part) if isinstance(part, int) else 0
            left.append(part - before if isinstance(part, int) else part)
        else:
            found[tuple(left)] = line
    return found


def parse_yaml(path: Path, text: str) -> SourceDocument:
    """Parse a YAML text; ``path`` is used for locations only.

    Raises:
        SpecError: the text is not valid YAML, is outside the supported subset, or is not a mapping.
    """
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise SpecError(f"the file is larger than {MAX_BYTES // 1024} KiB", where=shown(path))
    try:
        builder = _Builder(path)
        for event in _events(path, text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise explain_failure(error, text, shown(path)) from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        where = f"{shown(path)}:{line}"
        raise SpecError("a control character is no YAML", where=where) from error
    except yaml.YAMLError as error:
        raise SpecError(f"this is no YAML: {error}", where=f"{shown(path)}:1") from error
    if not isinstance(builder.root, dict):
        raise SpecError("a mapping of keys to values is expected here", where=f"{shown(path)}:1")
    return SourceDocument(path, builder.root, builder.lines)


def shown(path: Path) -> str:
    """Return a file path as text for messages: relative to the working directory if inside it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _events(path: Path, text: str) -> Iterator[yaml.Event]:
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise SpecError(
                "anchors and aliases are not read",
                where=f"{shown(path)}:{_line(event)}",
                hint="write the value out; a text that begins with '*' or '&' goes in quotes",
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            where = f"{shown(path)}:{_line(event)}"
            raise SpecError(f"the tag {tag!r} is not read", where=where, hint="leave it out")
        yield event


def _is_text(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Builder:
    """Non-recursive builder of the parsed value, and of its line numbers, from YAML events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root: Any = None
        self.lines: dict[Path_, int] = {(): 1}
        self._open: list[tuple[Any, Path_]] = []
        self._key: list[str | None] = []
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        line = _line(event)
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._error("a file holds one document", line)
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.MappingStartEvent():
                self._begin({}, line)
            case yaml.SequenceStartEvent():
                self._begin([], line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._open.pop()
                self._key.pop()
            case _:
                pass

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        if not _is_text(event.value):
            raise self._error("half of a surrogate pair is no character", line)
        if self._open and isinstance(self._open[-1][0], dict) and self._key[-1] is None:
            mapping, path = self._open[-1]
            if event.value in mapping:
                raise self._build_repeat_error(event.value, path, line)
            self._key[-1] = event.value
            self.lines[(*path, event.value)] = line
            return
        plain = event.implicit[0] and not event.style
        self._put(self._parse_scalar(event.value, line) if plain else event.value, line)

    def _begin(self, value: Any, line: int) -> None:
        if self._open and isinstance(self._open[-1][0], dict) and self._key[-1] is None:
            raise self._error("a key must be a word", line)
        if len(self._open) >= MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", line)
        path = self._put(value, line)
        self._open.append((value, path))
        self._key.append(None)

    def _put(self, value: Any, line: int) -> Path_:
        if not self._open:
            self.root = value
            return ()
        holder, path = self._open[-1]
        if isinstance(holder, list):
            place: Path_ = (*path, len(holder))
            holder.append(value)
        else:
            key = self._key[-1]
            assert key is not None
            place = (*path, key)
            holder[key] = value
            self._key[-1] = None
        self.lines.setdefault(place, line)
        return place

    def _parse_scalar(self, text: str, line: int) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text):
            return int(text.replace("_", ""))
        if _FLOAT.match(text):
            value = float(text)
            if value in (float("inf"), float("-inf")):
                raise self._error(f"{text[:30]} is too large a number", line)
            return value
        return text

    def _build_repeat_error(self, key: str, path: Path_, line: int) -> SpecError:
        """Return the error for a key that is repeated in one mapping."""
        problem = f"the key {key!r} is already on line {self.lines[(*path, key)]}"
        listed = bool(path) and isinstance(path[-1], int)
        hint = "each entry of a list begins with '- '" if listed else "leave one of them out"
        return self._error(problem, line, hint)

    def _error(self, problem: str, line: int, hint: str = "") -> SpecError:
        return SpecError(problem, where=f"{shown(self.path)}:{line}", hint=hint)


def explain_failure(error: yaml.MarkedYAMLError, text: str, path: str) -> SpecError:
    """Return the error for a YAML syntax error: its line, its likely cause and a fix.

    Args:
        error: the parser's error.
        text: the text of the complete file.
        path: the file's path for display.
    """
    lines = text.splitlines() or [""]
    at = min(error.problem_mark.line if error.problem_mark else 0, len(lines) - 1)
    begun = min(error.context_mark.line, at) if error.context_mark else at
    line, problem, hint = _failure(error, lines, begun, at)
    return SpecError(problem, where=f"{path}:{line + 1}", hint=hint)


def _failure(
    error: yaml.MarkedYAMLError, lines: list[str], begun: int, at: int
) -> tuple[int, str, str]:
    context, problem = error.context or "", error.problem or error.context or ""
    tabbed = next((n for n in (at, at - 1) if n >= 0 and "\t" in _indent(lines[n])), None)
    if tabbed is not None:
        return tabbed, "a tab indents this line", "indent by spaces: put spaces where the tab is"
    if "scalar" in context and "quoted" in context:
        hint = "close it, or put the other kind of quotes around a text that holds one"
        return begun, "a quote is opened here and never closed", hint
    if "flow" in context:
        return _flow_fault(lines, begun, at)
    return _block_failure(lines, at, problem)


def _flow_fault(lines: list[str], begun: int, at: int) -> tuple[int, str, str]:
    """Return line, problem and hint for a syntax error within braces or brackets."""
    part = "\n".join(lines[begun : at + 1])
    opened = [mark for mark in _OPEN if lines[begun].count(mark) > lines[begun].count(_OPEN[mark])]
    if opened:
        mark = opened[-1]
        return begun, f"{mark!r} is opened here and never closed", f"add {_OPEN[mark]!r}"
    if part.count("'") % 2 or part.count('"') % 2:
        return begun, "a quote is opened here and never closed", "add the closing quote"
    hint = "within [...] and {...} a text with brackets, commas or ': ' of its own goes in quotes"
    return at, "this is no YAML: a ',' or the closing bracket is missing", hint


def _block_failure(lines: list[str], at: int, problem: str) -> tuple[int, str, str]:
    """Return line, problem and hint for a syntax error outside of braces and brackets."""
    line, before = lines[at], lines[at - 1] if at else ""
    if found := _UNQUOTED.search(line):
        hint = f"put the text in quotes: it begins with {found[1]!r}"
        return at, f"{found[1]!r} cannot begin a text", hint
    if _QUOTED_KEY.match(line):
        hint = "put all of it in quotes: - \"'fc' in dense\""
        return at, "a quote ends before its text does", hint
    for place in (at, at - 1):
        if place >= 0 and _KEY.match(lines[place]):
            return place, "a space is missing after the colon", "write 'key: value'"
        if place >= 0 and _NO_COLON.match(lines[place]):
            return place, "a colon is missing after the key", "write 'key: value'"
    if "mapping values are not allowed" in problem:
        hint = "put a text that holds ': ' in quotes; else look for a wrong indentation"
        return at, "there is a second ': ' here", hint
    own, above = len(_indent(line)), len(_indent(before))
    if own != above and line.strip():
        detail = f"this line is indented by {own} spaces, the one above by {above}"
        return at, f"the indentation does not fit: {detail}", "indent entries of one section alike"
    hint = "look for a missing colon, quote or indentation just before"
    return at, f"this is no YAML: {problem}", hint


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
