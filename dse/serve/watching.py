"""Studies as they stand now: read once, and again only when their record has grown."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

from dse.core.pareto import ParetoSet
from dse.core.trial import Driver, Event
from dse.core.trials import Trials
from dse.drivers.bounds import Room
from dse.errors import DseError, StudyError, nearest
from dse.protocols import Storage
from dse.report.failures import Failure, failures
from dse.report.figures.growth import growth_figures
from dse.report.figures.style import Drawing
from dse.report.figures.trade_off import trade_off_figures
from dse.serve.presence import Presence
from dse.serve.refusals import UnknownError
from dse.study import Study, opened_storage

YOUNG_S = 0.3
"""What was read so lately is not read again, however many look on."""

_REST = 2.0
"""A study that took long to read is left alone for so many times as long."""

_MOST_PAIRS = 3

_MOST_TRIALS = 2_000_000
"""Studies that nobody looked at lately are forgotten from so many trials on, in all."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A study at one moment. ``changed_at`` is when the record was seen to grow; ``None``: never.

    ``there`` are the drivers that are at work as far as anybody can tell.
    """

    spec: Mapping[str, Any]
    study: Study
    trials: Trials
    events: Sequence[Event]
    there: Sequence[Driver]
    changed_at: float | None

    @cached_property
    def finished(self) -> Trials:
        """The finished trials in their order."""
        return self.trials.finished

    @cached_property
    def front(self) -> ParetoSet:
        """The designs that no other beats."""
        return ParetoSet.of(self.study.problem, self.finished)

    @cached_property
    def failures(self) -> list[Failure]:
        """Why designs are not on the front."""
        return failures(self.study.problem, self.finished)

    @cached_property
    def drawings(self) -> list[Drawing]:
        """The trade-offs of the first objectives, and how the hypervolume grew."""
        pairs = trade_off_figures(self.front, self.finished)[:_MOST_PAIRS]
        return [*pairs, *growth_figures(self.front, self.finished)[:1]]

    @property
    def exact(self) -> bool:
        """True if every legal design was taken into account."""
        return any(event.kind == "exact" for event in self.events)

    @cached_property
    def room(self) -> Room:
        """What the study's own budget leaves."""
        bounds, over = self.study.bounds(), self.trials.over
        spent_s = float(self.trials.cost_s[over].sum())
        if bounds.time_s is not None and spent_s >= bounds.time_s:
            return Room(0, "the time is used up")
        return bounds.room(
            asked=len(self.trials),
            measured=int((self.trials.measured > 0).sum()),
            under_way=int((~over).sum()),
            spent_s=spent_s,
        )

    @property
    def mark(self) -> str:
        """Another one whenever there is something new to show."""
        there = ",".join(str(driver.id) for driver in self.there)
        return f"{len(self.finished)}.{len(self.trials)}.{len(self.events)}.{there}"


class Watch:
    """Looks at the studies of a storage for everybody who looks on.

    Args:
        storage: a storage or its URL. A file that is not there yet is looked for again.
    """

    def __init__(self, storage: str | Storage) -> None:
        self._told = storage
        self._opened: Storage | None = None
        self._opening = Lock()
        self._presence = Presence()
        self._seats: OrderedDict[str, _Seat] = OrderedDict()

    @property
    def storage(self) -> Storage:
        """The storage; every method of it may be called by any thread."""
        with self._opening:
            if self._opened is None or (isinstance(self._told, str) and not self._opened.studies()):
                if self._opened is not None:
                    self._opened.close()
                self._opened = opened_storage(self._told)
            return self._opened

    def names(self) -> list[str]:
        """The names of all studies."""
        return self.storage.studies()

    def snapshot(self, name: str) -> Snapshot:
        """The study as it stands.

        Raises:
            UnknownError: there is none of that name.
            StudyError: its record cannot be understood.
            StorageError: it cannot be read.
        """
        storage = self.storage
        if name not in storage.studies():
            problem = f"there is no study {name[:80]!r}"
            raise UnknownError(problem, hint=nearest(name[:80], storage.studies()))
        with self._opening:
            seat = self._seats.setdefault(name, _Seat())
            self._seats.move_to_end(name)
        found = seat.looked(name, storage, self._presence)
        self._forget()
        return found

    def close(self) -> None:
        """Let go of the storage."""
        if self._opened is not None:
            self._opened.close()

    def _forget(self) -> None:
        with self._opening:
            while len(self._seats) > 1 and sum(s.size for s in self._seats.values()) > _MOST_TRIALS:
                self._seats.popitem(last=False)


class _Seat:
    """One study that is watched."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._lock = Lock()
        self._looked_at = -float("inf")
        self._took_s = 0.0

    @property
    def size(self) -> int:
        """How many trials are held."""
        return 0 if self.snapshot is None else len(self.snapshot.trials)

    def looked(self, name: str, storage: Storage, presence: Presence) -> Snapshot:
        """The study with what is new, unless that was read a moment ago or is being read.

        Nobody waits for another's reading but for the very first.
        """
        before = self.snapshot
        if not self._lock.acquire(blocking=before is None):
            assert before is not None
            return before
        try:
            now = time.monotonic()
            rest_s = max(YOUNG_S, _REST * self._took_s)
            if self.snapshot is None or now - self._looked_at >= rest_s:
                self.snapshot = _read(name, storage, presence, self.snapshot)
                self._looked_at = time.monotonic()
                self._took_s = self._looked_at - now
            return self.snapshot
        finally:
            self._lock.release()


def _read(name: str, storage: Storage, presence: Presence, before: Snapshot | None) -> Snapshot:
    spec = storage.spec(name)
    if spec is None:
        raise UnknownError(f"there is no study {name[:80]!r}")
    if before is not None and before.spec != spec:  # deleted, and begun anew
        before = None
    events = storage.events(name)
    there = presence.there(name, storage.drivers(name))
    if before is not None and _same(before, events, there, storage, name):
        return before
    trials = storage.trials(name)
    grown = before is not None and len(before.finished) != int(trials.over.sum())
    grown = grown or (before is not None and len(before.trials) != len(trials))
    told = None if before is None else before.changed_at
    new = Snapshot(
        spec=spec,
        study=_loaded(name, storage)
        if before is None or before.study.plan.awaited
        else before.study,
        trials=trials,
        events=events,
        there=there,
        changed_at=time.monotonic() if grown else told,
    )
    _ = new.front  # here, where it is done once for all who look on
    return new


def _same(
    before: Snapshot,
    events: Sequence[Event],
    there: Sequence[Driver],
    storage: Storage,
    name: str,
) -> bool:
    if len(events) != len(before.events) or [d.id for d in there] != [d.id for d in before.there]:
        return False
    news = storage.since(name, len(before.finished), len(before.trials))
    return not news.finished and not news.added


def _loaded(name: str, storage: Storage) -> Study:
    try:
        return Study.load(name, storage)
    except DseError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # another program wrote it
        problem = "its record does not say what was asked"
        raise StudyError(problem, hint=f"{type(error).__name__}: {error}"[:200]) from error
