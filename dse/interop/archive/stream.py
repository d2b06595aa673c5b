"""Streaming read of a stored study for export, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dse.core.trial import Driver, Event, Trial
from dse.core.trials import TrialStream
from dse.interop.archive.study_record import Record
from dse.protocols import Storage, StudyReader, SupportsReading
from dse.storage.trust import remove_import_mark, without_trust

PlacedTrial = tuple[Trial, int | None]
"""Trial with its position among the finished ones; ``None`` if it is unfinished."""


class Portable(Protocol):
    """Interface of a study that can be exported: a record in memory or a stream from a storage."""

    @property
    def study(self) -> str:
        """Name of the study in the file."""
        ...

    @property
    def spec(self) -> Mapping[str, Any]:
        """Specification that the study was created with."""
        ...

    @property
    def about(self) -> Mapping[str, Any]:
        """Explanation of the study's names, units and goals, for human readers of the file."""
        ...

    @property
    def count(self) -> int:
        """Number of the study's trials."""
        ...

    def placed_trials(self) -> Iterator[PlacedTrial]:
        """Iterate over the trials by number, with their indices in the order of finishing.

        Repeated calls yield the same trials.
        """
        ...

    def others(self, part: str) -> Iterator[Any]:
        """Iterate over one kind of record: drivers, asks, attempts, reports or events.

        ``part`` is the name of the kind, such as ``drivers``.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Stored study that is read in chunks, with the same contents as a :class:`Record`."""

    study: str
    spec: Mapping[str, Any]
    reader: StudyReader
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of the study's trials."""
        return self.reader.counts["trials"]

    def placed_trials(self) -> Iterator[PlacedTrial]:
        """Iterate over the trials by number; unfinished ones become pending, without a driver."""
        for page in self.reader.trials():
            for trial, place in zip(page, page.ended.tolist(), strict=True):
                yield (trial, place) if place >= 0 else (trial.freed(), None)

    def others(self, part: str) -> Iterator[Any]:
        """Iterate over the records of one kind, such as ``asks``; drivers are marked as ended."""
        for one in self.reader.others(part):
            if isinstance(one, Driver):
                yield replace(one, left=True)
            elif not isinstance(one, Event) or without_trust([one]):
                yield one


@contextmanager
def open_stream(storage: Storage, study: str) -> Iterator[Stream | Record]:
    """Open a consistent snapshot of a stored study for export.

    If the storage does not support streaming, the complete record is loaded.

    Raises:
        StudyError: there is no such study.
        StorageError: it is damaged.
    """
    if isinstance(storage, SupportsReading):
        with storage.reader(study) as reader:
            yield Stream(study=study, spec=remove_import_mark(reader.spec), reader=reader)
    else:
        yield Record.of(storage, study)


@contextmanager
def open_trials(storage: Storage, study: str) -> Iterator[TrialStream]:
    """Open the trials of a consistent snapshot of a stored study, for reading in parts.

    Raises:
        StudyError: there is no such study.
        StorageError: it is damaged.
    """
    if isinstance(storage, SupportsReading):
        with storage.reader(study) as reader:
            yield TrialStream(
                size=reader.counts["trials"], spread=reader.spread_names(), parts=reader.trials()
            )
    else:
        yield TrialStream.of(storage.trials(study))
