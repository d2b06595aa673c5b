"""JSON lines format of a study, with a check sum in each line and one for the file at its end."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from dse.core.trial import Asked, Attempt, Driver, Event, Report, Trial
from dse.errors import StorageError
from dse.interop.archive.record_codec import noun_of, plain
from dse.interop.archive.stream import Portable
from dse.interop.archive.study_record import Record

VERSION = 1
"""Format version; a reader refuses a newer one."""

LONGEST = 1 << 28
"""Largest line, in bytes; the first is the longest, with the texts of all the study's files."""

_SUM = re.compile(rb'(.*),"crc32":"([0-9a-f]{8})"\}\n', re.DOTALL)
_EVERYTHING_ELSE: Mapping[str, tuple[str, type]] = {
    "driver": ("drivers", Driver),
    "ask": ("asks", Asked),
    "attempt": ("attempts", Attempt),
    "report": ("reports", Report),
    "event": ("events", Event),
}
_AGAIN = "export it again: dse studies export NAME -o FILE"


def header(record: Portable) -> str:
    """Return the first line of an archive file: format version, study, specification, units."""
    facts = {"format": VERSION, "study": record.study, **record.about, "spec": record.spec}
    return _line("study", facts)


def trial_line(trial: Trial, place: int | None) -> str:
    """Return the JSON line of a trial; a finished one has its index in the order of finishing."""
    return _line("trial", {**plain(trial), "finished": place})


def other_lines(record: Portable) -> Iterator[tuple[str, str]]:
    """Yield (kind, line) for each record of a study that is not a trial, such as ``asks``."""
    for kind, (part, _) in _EVERYTHING_ELSE.items():
        for one in record.others(part):
            yield part, _line(kind, plain(one))


def fingerprint(lines: Iterable[str]) -> str:
    """Return the SHA-256 of a study's lines; it identifies the study in both archive formats."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode())
    return digest.hexdigest()


def lines_of(record: Portable) -> Iterator[str]:
    """Yield all lines of a study's file except the last one, which holds the check sum."""
    yield header(record)
    yield from (trial_line(trial, place) for trial, place in record.placed_trials())
    yield from (line for _, line in other_lines(record))


def write_lines(record: Portable, file: BinaryIO) -> str:
    """Write the study to a file, and return the SHA-256 of all lines except the last one.

    Raises:
        StorageError: a value cannot be written as JSON.
    """
    digest = hashlib.sha256()
    counts = dict.fromkeys(("trials", *(part for part, _ in _EVERYTHING_ELSE.values())), 0)
    trials = (("trials", trial_line(trial, place)) for trial, place in record.placed_trials())
    for part, line in chain([("", header(record))], trials, other_lines(record)):
        encoded = line.encode()
        digest.update(encoded)
        file.write(encoded)
        if part:
            counts[part] += 1
    file.write(_line("end", {**counts, "sha256": digest.hexdigest()}).encode())
    return digest.hexdigest()


def read_lines(path: Path) -> Record:
    """Read a study from a file of JSON lines.

    Raises:
        StorageError: the file is not an exported study, is damaged, or ends too early.
    """
    gathered, digest, place = JsonLinesReader(), hashlib.sha256(), 0
    with path.open("rb") as file:
        while line := file.readline(LONGEST + 1):
            place += 1
            kind = gathered.read(line, f"{path}:{place}")
            if kind == "end":
                break
            digest.update(line)
        if gathered.end.get("sha256") != digest.hexdigest():
            raise _cut(path, place) if not gathered.end else _unlike(path, place)
        if file.read(1):
            raise StorageError("something follows the end", where=f"{path}:{place + 1}")
    return gathered.record()


class JsonLinesReader:
    """Incremental parser of a study; it collects the lines read so far."""

    def __init__(self) -> None:
        self.end: dict[str, Any] = {}
        self._head: dict[str, Any] = {}
        self._trials: list[Trial] = []
        self._places: dict[int, int] = {}
        self._parts: dict[str, list[Any]] = {part: [] for part, _ in _EVERYTHING_ELSE.values()}

    def read(self, line: bytes, where: str) -> str:
        """Parse one line of an archive file and keep its content; return its kind, such as trial.

        Raises:
            StorageError: the line is damaged, or inconsistent with earlier ones.
        """
        kind, fields = _parse_line(line, where)
        try:
            self._take(kind, fields)
        except StorageError as error:
            raise error.at(where) from error
        return kind

    def add(self, trial: Trial, place: int | None) -> None:
        """Add a trial to the study read so far, with its index in the order of finishing."""
        if place is not None and place in self._places:
            raise StorageError(
                f"trials {self._places[place]} and {trial.number} have the same finishing position"
            )
        if trial.state.finished != (place is not None):
            raise StorageError(
                f"trial {trial.number} is {trial.state.value}, but has place {place}"
            )
        self._trials.append(trial)
        if place is not None:
            self._places[place] = trial.number

    def record(self) -> Record:
        """Return the collected study as a record."""
        names = ("study", "spec", "format")
        return Record(
            study=self._head["study"],
            spec=self._head["spec"],
            trials=tuple(self._trials),
            finished_order=tuple(self._places[place] for place in sorted(self._places)),
            **{part: tuple(found) for part, found in self._parts.items()},
            about={name: value for name, value in self._head.items() if name not in names},
        )

    def _take(self, kind: str, fields: Any) -> None:
        if (kind == "study") == bool(self._head):
            raise StorageError(
                f"a {kind!r} is in the wrong place", hint="is this an exported study?"
            )
        if kind == "study":
            self._head = _checked_header(fields)
        elif kind == "trial":
            place = fields.pop("finished", None) if isinstance(fields, dict) else None
            self.add(noun_of(Trial, fields), place)
        elif kind == "end":
            self.end = fields if isinstance(fields, dict) else {}
        elif kind in _EVERYTHING_ELSE:
            part, noun = _EVERYTHING_ELSE[kind]
            self._parts[part].append(noun_of(noun, fields))
        else:
            raise StorageError(f"{kind[:60]!r} is not a part of a study")


def _checked_header(fields: Any) -> dict[str, Any]:
    if not isinstance(fields, dict) or not isinstance(fields.get("format"), int):
        raise StorageError("this is no study that was exported")
    if fields["format"] > VERSION:
        raise StorageError(
            f"the file has format {fields['format']}, and this program reads up to {VERSION}",
            hint="upgrade: pip install --upgrade dse-engine",
        )
    if not isinstance(fields.get("study"), str) or not isinstance(fields.get("spec"), dict):
        raise StorageError("the file lacks the name or the spec of its study")
    return fields


def _line(kind: str, fields: Mapping[str, Any]) -> str:
    try:
        text = json.dumps({kind: fields}, separators=(",", ":"), allow_nan=False)[:-1]
    except (TypeError, ValueError) as error:
        raise StorageError(f"this {kind} cannot be written as JSON: {error}") from error
    return f'{text},"crc32":"{zlib.crc32(text.encode()):08x}"}}\n'


def _parse_line(line: bytes, where: str) -> tuple[str, Any]:
    """Verify the check sum of a line; return the line's kind and value."""
    if len(line) > LONGEST:
        raise StorageError(f"the line is longer than {LONGEST >> 20} MiB", where=where)
    found = _SUM.fullmatch(line)
    if found is None:
        raise StorageError("this is no line of a study that was exported", where=where, hint=_AGAIN)
    if f"{zlib.crc32(found[1]):08x}".encode() != found[2]:
        raise StorageError("the line is damaged: its check sum differs", where=where, hint=_AGAIN)
    try:
        [(kind, fields)] = json.loads(found[1] + b"}", parse_constant=_refuse_constant).items()
    except (AttributeError, RecursionError, ValueError) as error:
        raise StorageError(f"the line cannot be read: {error}", where=where) from error
    return kind, fields


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _cut(path: Path, place: int) -> StorageError:
    problem = "the file ends too early: its last line is missing"
    return StorageError(problem, where=f"{path}:{place}", hint=_AGAIN)


def _unlike(path: Path, place: int) -> StorageError:
    problem = "the file is damaged: lines are missing, or were changed or exchanged"
    return StorageError(problem, where=f"{path}:{place}", hint=_AGAIN)
