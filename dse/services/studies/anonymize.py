"""Anonymisation of records and strings: hosts, users and folders are replaced by pseudonyms.

An exported file holds a pseudonym for each folder. The import replaces it by the corresponding
folder of the importing machine, so that a study imported where it was exported is unchanged.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from typing import Any, TypeVar

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Asked, Attempt, Driver, Event, Report, Trial
from dse.core.trials import Trials, objects
from dse.interop.archive.stream import Portable
from dse.interop.archive.study_record import Record
from dse.report.json.columns import Sheet
from dse.schema.history.without_storages import storageless
from dse.schema.yaml.files import library
from dse.study.study_engine import StudyEngine

STUDY, LIBRARY, HOME = "/dse-export/study", "/dse-export/library", "/dse-export/home"
USER = "dse-export-user"
Noun = TypeVar("Noun", Asked, Attempt, Driver, Event, Report)

_REMEMBERED = 10_000
_ANYBODY = ("root", "user")
"""Generic user names, which need no pseudonym."""

_HOMES = r"(?:/home|/Users|/var/home)/(?!user\b)[\w.\-]+"
_NEVER = r"(?!)"
_PACKED = "base64:"
_CHOICE = "choice"
"""Kind of the events that the program reads back: which optimizer ``auto`` chose."""

_SHORTEST_HOST = 3
_FEW_PARTS = 2
"""Number of path parts up to which a folder, such as ``/data``, is not taken for a project."""


@dataclass(frozen=True, kw_only=True)
class Pseudonyms:
    """Replacement of folder, user and host names in texts by pseudonyms, or back.

    Args:
        folders: pseudonym by folder (export), or folder by pseudonym (import).
        users: pseudonym by user name (export), or user name by pseudonym (import), for user names
            in paths.
        hosts: pseudonym by host name; applied only to the output of programs and drivers, not to
            the text of the study itself.
        homes: whether the home folders of other users are replaced, too.
    """

    folders: Mapping[str, str]
    users: Mapping[str, str]
    hosts: Mapping[str, str] = field(default_factory=dict)
    homes: bool = False

    @cached_property
    def text(self) -> Callable[[str], str]:
        """Function that replaces the names of folders and users in a text; cached."""
        folders = [re.escape(one) for one in _longest_first(self.folders)]
        folders += [_HOMES] if self.homes else []
        users = "|".join(map(re.escape, self.users))
        parts = [rf"(?<![\w.])(?:{'|'.join(folders)})(?![\w\-])"] if folders else []
        parts += [rf"(?<=/)(?:{users})(?=/)"] if users else []
        pattern, known = re.compile("|".join(parts) or _NEVER), {**self.folders, **self.users}

        @lru_cache(_REMEMBERED)
        def named(text: str) -> str:
            packed = text.startswith(_PACKED)
            return text if packed else pattern.sub(lambda one: known.get(one[0], HOME), text)

        return named

    @cached_property
    def in_output(self) -> Callable[[str], str]:
        """Function that replaces folder, user and host names in a program's output; cached."""
        words = "|".join(map(re.escape, _longest_first(self.hosts)))
        pattern = re.compile(rf"(?<![\w.\-])(?:{words})(?![\w\-])" if words else _NEVER)

        @lru_cache(_REMEMBERED)
        def named(text: str) -> str:
            return pattern.sub(lambda one: self.hosts[one[0]], self.text(text))

        return named

    def value(self, value: Any) -> Any:
        """Return a JSON value with the names in all of its strings replaced, including keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(one) for key, one in value.items()}
        return [self.value(one) for one in value] if isinstance(value, list | tuple) else value

    def failure(self, failure: Failure | None) -> Failure | None:
        """Return a trial's failure reason with the names of folders, users and hosts replaced."""
        return None if failure is None else replace(failure, reason=self.in_output(failure.reason))

    def failures(self, trials: Trials) -> Trials:
        """Return trials with the names in their failure reasons replaced."""
        return replace(trials, failures=objects([self.failure(one) for one in trials.failures]))

    def sheet(self, sheet: Sheet) -> Sheet:
        """Return a table of trials, by column, with the names in its failure reasons replaced."""
        reasons = [self.in_output(one) if isinstance(one, str) else one for one in sheet["reason"]]
        return {**sheet, "reason": reasons}

    def events(self, events: Iterable[Event]) -> tuple[Event, ...]:
        """Return events with the names in their texts replaced."""
        return tuple(map(self.noun, events))

    def trial(self, trial: Trial) -> Trial:
        """Return a trial with the names in its failure and design replaced.

        A design value may contain a path, which is replaced as in the specification of the space.
        """
        texts = [value for value in trial.design.values() if isinstance(value, str)]
        if trial.failure is None and all(self.text(one) == one for one in texts):
            return trial
        design = Design(self.value(dict(trial.design)))
        return replace(trial, design=design, failure=self.failure(trial.failure))

    def noun(self, noun: Noun) -> Noun:
        """Return an ask, attempt, report, driver or event with the names in it replaced.

        An export replaces names of folders, users and hosts by pseudonyms; an import replaces
        pseudonyms by names.
        """
        match noun:
            case Event():
                named = self.text if noun.kind == _CHOICE else self.in_output
                return replace(noun, text=named(noun.text))
            case Attempt():
                return replace(noun, failure=self.failure(noun.failure))
            case Driver():
                provenance = {key: self.in_output(one) for key, one in noun.provenance.items()}
                host = self.hosts.get(noun.host, noun.host)
                return replace(noun, host=host, provenance=provenance)
            case _:
                return noun


@dataclass(frozen=True, kw_only=True)
class AnonymizedRecord:
    """Study record for an export, without names of machines, users and folders."""

    record: Portable
    names: Pseudonyms

    @property
    def study(self) -> str:
        """Name of the study."""
        return self.record.study

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """Specification with which the study was created, names replaced."""
        return dict(self.names.value(self.record.spec))

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """Units, kinds, goals and limits by which a reader interprets the study, names replaced."""
        return dict(self.names.value(self.record.about))

    @property
    def count(self) -> int:
        """Number of trials of the study."""
        return self.record.count

    def placed_trials(self) -> Iterator[tuple[Trial, int | None]]:
        """Yield the trials by number, each with its index in the order in which trials finished."""
        return ((self.names.trial(one), place) for one, place in self.record.placed_trials())

    def others(self, part: str) -> Iterator[Any]:
        """Yield the study's records of one kind other than trials, with names of folders replaced.

        ``part`` is ``drivers``, ``asks``, ``attempts``, ``reports`` or ``events``.
        """
        return map(self.names.noun, self.record.others(part))


def machine_names(spec: Mapping[str, Any], drivers: Sequence[Driver] = ()) -> Pseudonyms:
    """Return the pseudonyms for the folders of a study's files and the machines on which it ran.

    Args:
        spec: the specification that the study was created with.
        drivers: the recorded processes that ran the study.
    """
    path = PurePath(str(spec.get("path", "")))
    texts = spec.get("texts")
    others = map(PurePath, texts) if isinstance(texts, Mapping) else ()
    folders = {str(library()): LIBRARY, **dict.fromkeys(_homes(), HOME)}
    if path.is_absolute():
        folders[str(_root(path, others))] = STUDY
    folders = {folder: name for folder, name in folders.items() if len(PurePath(folder).parts) > 1}
    return Pseudonyms(folders=folders, users=_user(), hosts=_hosts(drivers), homes=True)


def names_of(study: StudyEngine) -> Pseudonyms:
    """Return the pseudonyms for the machines and folders of a stored study."""
    storage, name = study.storage, study.name
    return machine_names(storage.spec(name) or {}, storage.drivers(name))


def nameless(record: Portable) -> AnonymizedRecord:
    """Return a study record for an export in which machine, user and folder names are replaced."""
    drivers = list(record.others("drivers"))
    return AnonymizedRecord(record=record, names=machine_names(record.spec, drivers))


def localize_record(record: Record, folder: Path) -> Record:
    """Return an imported record with pseudonyms replaced by the folders of this machine.

    Args:
        record: the contents of the file.
        folder: folder of the study's files on this machine; it need not exist.
    """
    record = replace(record, spec=storageless(record.spec))
    folders = {STUDY: str(folder.resolve()), LIBRARY: str(library())}
    home = next(iter(_homes()), "")
    user = {word: name for name, word in _user().items()}
    names = Pseudonyms(folders={**folders, **({HOME: home} if home else {})}, users=user)
    return replace(
        record,
        spec=names.value(record.spec),
        trials=tuple(map(names.trial, record.trials)),
        about=names.value(record.about),
        events=names.events(record.events),
        attempts=tuple(map(names.noun, record.attempts)),
        drivers=tuple(map(names.noun, record.drivers)),
    )


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=len, reverse=True)


def _root(path: PurePath, others: Iterable[PurePath]) -> PurePath:
    """Return the folder relative to which an export gives the paths of a study's files.

    It is the working directory if that contains the study file, else the study file's folder. If
    other files of the study lie outside, it is their common parent folder instead, unless that is
    too close to the file system's root.
    """
    here, root = Path.cwd(), path.parent
    if root.is_relative_to(here) and len(here.parts) > _FEW_PARTS:
        root = here
    apart = [PurePath(one) for one in (*_homes(), str(library()))]
    for other in others:
        if other.is_absolute() and not other.is_relative_to(root):
            common = PurePath(os.path.commonpath([root, other.parent]))
            few = len(common.parts) <= _FEW_PARTS
            if not few and not any(one.is_relative_to(common) for one in apart):
                root = common
    return root


def _homes() -> tuple[str, ...]:
    with suppress(RuntimeError):
        return tuple(dict.fromkeys([str(Path.home()), str(Path.home().resolve())]))
    return ()


def _user() -> dict[str, str]:
    with suppress(KeyError, OSError):
        name = getpass.getuser()
        return {} if name in _ANYBODY or len(name) < _SHORTEST_HOST else {name: USER}
    return {}


def _hosts(drivers: Sequence[Driver]) -> dict[str, str]:
    """Return a pseudonym for each machine, keyed by each of the machine's names."""
    found: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for one in [*drivers, Driver(host=platform.node())]:
        words = [one.host, one.host.partition(" ")[0], one.provenance.get("host", "")]
        number = numbers.setdefault(words[1], len(numbers) + 1)
        for word in words:
            if len(word) >= _SHORTEST_HOST and word != "localhost":
                found.setdefault(word, f"machine-{number}")
    return found
