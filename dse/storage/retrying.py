"""Storage wrapper that retries calls while the storage is unavailable, without repeated effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from dse.core.design import Design
from dse.core.trial import (
    Ask,
    Asked,
    Attempt,
    Driver,
    Event,
    History,
    News,
    Outcome,
    Report,
    State,
    Take,
    Trial,
)
from dse.core.trials import Trials
from dse.errors import StudyError
from dse.protocols import NEW, PLAIN, Queueing, Storage
from dse.storage.patience import PATIENCE_S, Retrier
from dse.storage.spool import Spooled, remove_spool, write_spool

ENTRY = "entry"
"""Key in a driver's provenance of the unique mark that identifies the driver's registration."""

_FAREWELL_S = 5.0
"""Maximum wait of a leaving driver; if the call fails, other drivers detect its absence."""


class RetryingStorage:
    """Storage of a driver that retries calls while the underlying storage is unavailable.

    A failed write may have taken effect. Before it is repeated, the record is therefore checked for
    a trace that only this write can have left: an ``add`` records its driver and the number of
    trials before it, a claimed trial records its driver, a trial takes only one outcome, and the
    registration of a driver has a unique mark.

    Only :class:`~dse.errors.StorageUnavailableError` causes a retry. If the storage refuses writes,
    they are retried only after an earlier write has succeeded: otherwise it was never writable.

    Args:
        storage: the underlying storage.
        patience_s: the time in seconds for which a call is retried; 0 disables retries.
        on_notice: called with a message when the storage becomes unavailable, and when it is back.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        patience_s: float = PATIENCE_S,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._storage = storage
        self._retrier = Retrier(patience_s, on_notice, self._spool)
        self._entry = uuid4().hex
        self._study = ""
        self._driver: int | None = None
        self._unstored: dict[int, Outcome] = {}
        self._has_spooled = False
        self._reports: Counter[tuple[int, int, int | None]] = Counter()
        self._known_reports = 0
        self._expected: dict[tuple[int, int, int | None], int] = {}

    def set_aside(self, outcomes: Mapping[int, Outcome]) -> None:
        """Hold outcomes until they are stored; write them to disk during a storage outage."""
        self._unstored |= outcomes
        if self._retrier.is_away:
            self._spool()

    def create(self, study: str, spec: Mapping[str, Any], history: History = NEW) -> None:
        def first() -> None:
            self._storage.create(study, spec, history)

        def again() -> None:
            if self._storage.spec(study) != spec:
                first()

        self._retrier.write(first, again)

    def delete(self, study: str) -> None:
        def again() -> None:
            if study in self._storage.studies():
                self._storage.delete(study)

        self._retrier.write(lambda: self._storage.delete(study), again)

    def add(self, study: str, designs: Sequence[Design], ask: Ask = PLAIN) -> list[Trial]:
        def first() -> list[Trial]:
            return self._storage.add(study, designs, ask)

        def again() -> list[Trial]:
            for one in self._storage.asks(study):
                if one.worker == ask.worker and one.first == ask.after and one.count:
                    return list(self._storage.trials(study)[one.first : one.first + one.count])
            return first()

        recognisable = ask.worker is not None and ask.after is not None
        return self._retrier.write(first, again) if recognisable else first()

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        def first() -> None:
            self._storage.move(study, numbers, to)

        self._retrier.write(first, first)

    def claim(
        self, study: str, numbers: Sequence[int], worker: int, lost: Collection[int] = ()
    ) -> list[Trial]:
        def first() -> list[Trial]:
            return self._storage.claim(study, numbers, worker, lost)

        def again() -> list[Trial]:
            open_ = (t for t in self._standing(study, numbers) if not t.state.finished)
            held = {trial.number: trial for trial in open_ if trial.worker == worker}
            free = [number for number in numbers if number not in held]
            held |= {t.number: t for t in self._storage.claim(study, free, worker, lost)}
            return [held[number] for number in numbers if number in held]

        return self._retrier.write(first, again)

    def begin(self, study: str, begun: Mapping[int, float]) -> None:
        def first() -> None:
            self._storage.begin(study, begun)

        self._retrier.write(first, first)

    def finish(
        self,
        study: str,
        outcomes: Mapping[int, Outcome],
        events: Sequence[Event] = (),
        worker: int | None = None,
    ) -> list[int]:
        def first() -> list[int]:
            return self._storage.finish(study, outcomes, events, worker)

        def again() -> list[int]:
            trials = self._standing(study, outcomes)
            done = [t.number for t in trials if _is_from(t, outcomes[t.number], worker)]
            if done:  # one transaction stored the events too
                return done
            return self._storage.finish(
                study, outcomes, self._drop_recorded_events(study, events), worker
            )

        ended = self._retrier.write(first, again)
        self._forget(outcomes)
        return ended

    def retry(self, study: str, outcomes: Mapping[int, Outcome]) -> list[int]:
        def first() -> list[int]:
            return self._storage.retry(study, outcomes)

        def again() -> list[int]:
            open_ = [t for t in self._standing(study, outcomes) if not t.state.finished]
            held = [trial.number for trial in open_ if trial.worker == self._driver]
            free = [trial.number for trial in open_ if trial.worker is None]
            return [*free, *self._storage.retry(study, {n: outcomes[n] for n in held})]

        # After an outage, another driver may hold the trial: this one must not free it.
        freed = self._retrier.write(again if self._retrier.was_away else first, again)
        self._forget(outcomes)
        return freed

    def attempts(self, study: str) -> list[Attempt]:
        return self._retrier.read(lambda: self._storage.attempts(study))

    def spec(self, study: str) -> dict[str, Any] | None:
        return self._retrier.read(lambda: self._storage.spec(study))

    def studies(self) -> list[str]:
        return self._retrier.read(self._storage.studies)

    def trials(self, study: str) -> Trials:
        return self._retrier.read(lambda: self._storage.trials(study))

    def finished_order(self, study: str) -> list[int]:
        return self._retrier.read(lambda: self._storage.finished_order(study))

    def since(self, study: str, finished: int, trials: int) -> News:
        return self._retrier.read(lambda: self._storage.since(study, finished, trials))

    def asks(self, study: str) -> list[Asked]:
        return self._retrier.read(lambda: self._storage.asks(study))

    def record(self, study: str, events: Sequence[Event]) -> None:
        def first() -> None:
            self._storage.record(study, events)

        def again() -> None:
            self._storage.record(study, self._drop_recorded_events(study, events))

        self._retrier.write(first, again)

    def events(self, study: str) -> list[Event]:
        return self._retrier.read(lambda: self._storage.events(study))

    def report(self, study: str, reports: Sequence[Report]) -> None:
        """Store reports (intermediate metrics) of one attempt of a trial, none of them twice.

        Only this driver reports on that attempt, so the stored reports can be counted.
        """
        if not reports:
            return
        of = reports[0].number, reports[0].attempt, reports[0].worker
        if of not in self._expected:
            self._expected[of] = self._retrier.read(lambda: self._count_reports(study, of))
        self._expected[of] += len(reports)

        def first() -> None:
            self._storage.report(study, reports)

        def again() -> None:
            if self._count_reports(study, of) < self._expected[of]:
                first()

        self._retrier.write(first, again)

    def reports(self, study: str, since: int = 0) -> list[Report]:
        return self._retrier.read(lambda: self._storage.reports(study, since))

    def enter(self, study: str, driver: Driver) -> int:
        marked = replace(driver, provenance={**driver.provenance, ENTRY: self._entry})

        def first() -> int:
            return self._storage.enter(study, marked)

        def again() -> int:
            drivers = self._storage.drivers(study)
            own = [one.id for one in drivers if one.provenance.get(ENTRY) == self._entry]
            return own[0] if own else first()

        self._study, self._driver = study, self._retrier.write(first, again)
        return self._driver

    def beat(self, study: str, driver: int) -> None:
        """Send a heartbeat without retries, because the next heartbeat follows soon."""
        self._storage.beat(study, driver)

    def leave(self, study: str, driver: int) -> None:
        """Record that the driver has left; retry for at most 5 s."""

        def first() -> None:
            self._storage.leave(study, driver)

        self._retrier.patience_s = min(self._retrier.patience_s, _FAREWELL_S)
        self._retrier.write(first, first)

    def drivers(self, study: str) -> list[Driver]:
        return self._retrier.read(lambda: self._storage.drivers(study))

    def close(self) -> None:
        self._storage.close()

    def _standing(self, study: str, numbers: Collection[int]) -> list[Trial]:
        """Return the trials with these numbers in their present state, as stored.

        Raises:
            StudyError: a number is unknown, since the storage lost trials during an outage.
        """
        trials = self._storage.trials(study)
        for number in numbers:
            if not 0 <= number < len(trials):
                raise StudyError(
                    f"the study {study!r} has no trial {number}",
                    hint="was the database replaced by an older copy? resume the study",
                )
        return [trials[number] for number in numbers]

    def _drop_recorded_events(self, study: str, events: Sequence[Event]) -> list[Event]:
        """Return the events that the record does not contain yet."""
        recorded = self._storage.events(study) if events else []
        return [event for event in events if event not in recorded]

    def _count_reports(self, study: str, of: tuple[int, int, int | None]) -> int:
        """Return the number of stored reports on one attempt of a trial by one driver (``of``)."""
        new = self._storage.reports(study, self._known_reports)
        self._reports.update((one.number, one.attempt, one.worker) for one in new)
        self._known_reports += len(new)
        return self._reports[of]

    def _forget(self, outcomes: Collection[int]) -> None:
        """Remove stored outcomes from memory and from the spool file."""
        for number in outcomes:
            self._unstored.pop(number, None)
        if self._has_spooled:
            self._spool()

    def _spool(self) -> None:
        """Write the outcomes that are not yet stored to the spool file; remove it if all are."""
        if self._unstored and self._driver is not None:
            unstored = Spooled(
                entry=self._entry,
                study=self._study,
                driver=self._driver,
                outcomes=self._unstored,
            )
            self._has_spooled = write_spool(unstored) is not None
        elif self._has_spooled:
            remove_spool(self._entry)
            self._has_spooled = False


class RetryingQueue(RetryingStorage):
    """Retrying storage with a queue of trials; one driver per study, its asker, adds new designs.

    The queue's calls can be repeated safely: the asker may acquire the same term again, and a
    repeated ``take`` returns also the trials that were assigned to the driver by a call whose
    result it has not received.
    """

    _storage: Queueing

    def acquire_asker(self, study: str, driver: int, term: int) -> bool:
        def first() -> bool:
            return self._storage.acquire_asker(study, driver, term)

        return self._retrier.write(first, first)

    def release_asker(self, study: str, driver: int, term: int) -> None:
        def first() -> None:
            self._storage.release_asker(study, driver, term)

        self._retrier.write(first, first)

    def take(
        self,
        study: str,
        driver: int,
        count: int,
        *,
        known: Collection[int] = (),
        lost: Collection[int] = (),
        below: int | None = None,
    ) -> Take:
        def first() -> Take:
            return self._storage.take(study, driver, count, known=known, lost=lost, below=below)

        def again() -> Take:
            # If the first call took effect, trials of lost drivers are now this driver's own, and
            # no longer reported as inherited. Among its trials, only they were begun already.
            took = first()
            begun = (trial.number for trial in took.trials if trial.begun_at is not None)
            return replace(took, inherited=took.inherited.union(begun))

        return self._retrier.write(first, again)


def retry_calls(
    storage: Storage,
    *,
    patience_s: float = PATIENCE_S,
    on_notice: Callable[[str], None] = lambda _: None,
) -> RetryingStorage:
    """Return a retrying wrapper of the storage, with a queue if the storage has one."""
    kind = RetryingQueue if isinstance(storage, Queueing) else RetryingStorage
    return kind(storage, patience_s=patience_s, on_notice=on_notice)


def _is_from(trial: Trial, outcome: Outcome, worker: int | None) -> bool:
    """Return whether the trial finished with this outcome, by this driver unless it is ``None``."""
    own = worker is None or trial.worker == worker
    return trial.state.finished and own and trial.outcome == outcome
