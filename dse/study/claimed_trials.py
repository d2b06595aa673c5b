"""A driver's lease on a study and the trials that it has claimed for evaluation.

Registration and heartbeats detect lost drivers. The trials of lost drivers, and failed trials, are
made pending once more.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace

from dse.core.metric import Failure, FailureKind
from dse.core.trial import Driver, Event, Outcome, State, Take, Trial
from dse.errors import DseError, OutageError, StorageError, StudyError
from dse.evaluation.checkpoints import again, forget_outcome, is_lost
from dse.protocols import Storage
from dse.study.history import TrialHistory
from dse.study.liveness import gone, here
from dse.system.process_tree import read_start_time

LOST = Outcome(
    state=State.FAILED, failure=Failure(kind="lost", reason="the driver that ran it was lost")
)


class Clock:
    """Monotonic clock of a process, with functions to wait."""

    def now_s(self) -> float:
        """Return the seconds since an arbitrary fixed moment; only differences have a meaning."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        time.sleep(seconds)

    def draw_s(self, low_s: float, high_s: float) -> float:
        """Draw a uniform waiting time, so that drivers that start together do not synchronize."""
        return random.uniform(low_s, high_s)  # noqa: S311 - no secret, and never recorded


class ClaimedTrials:
    """Trials that one process has reserved for evaluation, and the storage of their outcomes.

    Args:
        history: the driver's copy of the study's trials.
        lease: the driver's lease, which identifies it and detects lost drivers.
        retries: how often a failed trial is evaluated again, by kind of failure.
        begins: whether the study's drivers record when the evaluation of a trial begins.
    """

    def __init__(
        self,
        history: TrialHistory,
        lease: Lease,
        retries: Mapping[FailureKind, int],
        *,
        begins: bool = False,
    ) -> None:
        self._history = history
        self._lease = lease
        self._retries = retries
        self._begins = begins
        self._free: list[int] = []

    def taken(self, room: int, own: Set[int]) -> list[Trial]:
        """Reserve up to ``room`` trials that no live process holds.

        Args:
            room: maximum number of trials.
            own: numbers of the trials that this process holds already.
        """
        if room <= 0 or self._history.open.keys() <= own:
            return []
        if self._lease.due:
            self._lease.look()
            others = (one for number, one in self._history.open.items() if number not in own)
            self._free = [trial.number for trial in others if self._lease.free(trial)]
        got: list[Trial] = []
        while len(got) < room and self._free:
            tried, self._free = self._free[: room - len(got)], self._free[room - len(got) :]
            got += self._claim_trials([number for number in tried if number in self._history.open])
        return got

    def keep_held(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return those of the trials that the storage still assigns to this process."""
        known = self._history.storage.trials(self._history.study) if trials else ()
        return [one for one in trials if known[one.number].worker == self._lease.id]

    def end(self, outcomes: Mapping[int, Outcome], events: Sequence[Event] = ()) -> list[Trial]:
        """Store outcomes; queue trials again whose failure may be transient.

        Args:
            outcomes: by trial number.
            events: events to store with them.

        Returns:
            The trials to try again that this process has reserved.
        """
        storage, study = self._history.storage, self._history.study
        doubtful = any(o.failure and self._retries.get(o.failure.kind) for o in outcomes.values())
        before = storage.attempts(study) if doubtful else []
        more = {
            number: outcome
            for number, outcome in outcomes.items()
            if again(outcome.failure, before, number, self._retries)
        }
        ended = {number: o for number, o in outcomes.items() if number not in more}
        if ended or events:
            storage.finish(study, ended, events, self._lease.id)
        if not more:
            return []
        freed = storage.retry(study, more)
        for number in freed:  # before the claim: the next attempt must not find this one's files
            if not is_lost(more[number]):
                forget_outcome(study, self._history.open[number])
        got = storage.claim(study, freed, self._lease.id)
        self._history.hold(got)
        return got

    def split_suspect(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """Return the trials that may be evaluated together in one process, as a batch.

        A trial that would count as failed if its process died once more is evaluated alone, after
        all others: if it kills its process, no other trial is lost.
        """
        limit = self._retries.get("lost", 0)
        last = [trial for trial in trials if limit and trial.attempts >= limit]
        numbers = {trial.number for trial in last}
        return [trial for trial in trials if trial.number not in numbers] or last[:1]

    def _counts_as_attempt(self, trial: Trial) -> bool:
        """Return whether a lost driver's trial counts as tried: its evaluation may have begun."""
        noted = self._begins or trial.attempts > 0
        return trial.begun_at is not None or not noted

    def _claim_trials(self, numbers: Sequence[int]) -> list[Trial]:
        """Claim those of the trials that no live driver holds, and return the ones to evaluate.

        If a driver was lost with a trial, that counts as an attempt of the trial, unless the
        evaluation is known not to have begun.
        """
        history, lease = self._history, self._lease
        held = {number: history.open[number].worker for number in numbers}
        got = history.storage.claim(history.study, numbers, lease.id, lease.lost)
        history.hold(got)
        return self._settle_lost_trials(
            got, {n for n, worker in held.items() if worker in lease.lost}
        )

    def inherit(self, take: Take) -> list[Trial]:
        """Record failed attempts of trials taken from lost processes; return the trials to run.

        The record is read first, because some of the trials may have finished by now.
        """
        self._history.read()
        got = [trial for trial in take.trials if trial.number in self._history.open]
        self._history.hold(got)
        return self._settle_lost_trials(got, take.inherited)

    def _settle_lost_trials(self, got: Sequence[Trial], inherited: Set[int]) -> list[Trial]:
        """Record failed attempts of trials held by lost drivers; return the trials to evaluate.

        A trial lost with its driver counts as tried, unless it is known not to have begun.
        """
        tried = {
            trial.number: replace(LOST, begun_at=trial.begun_at)
            for trial in sorted(got, key=lambda trial: trial.number)
            if trial.number in inherited and self._counts_as_attempt(trial)
        }
        reissued = self.end(tried) if tried else []
        return [*(trial for trial in got if trial.number not in tried), *reissued]


class Times:
    """Recorder of the times at which the evaluation of a trial begins and ends.

    Args:
        history: the study's trials.
        kept: whether a begin time is stored immediately; otherwise it is stored with the outcome.
    """

    def __init__(self, history: TrialHistory, *, kept: bool) -> None:
        self._history = history
        self._kept = kept
        self._begun: dict[int, float] = {}

    def note(self, number: int, at: float) -> None:
        """Note that a trial was begun at ``at`` (seconds since the epoch); called by executors.

        An outage is not raised here, because the executor would lose the outcomes that it holds.
        """
        with suppress(OutageError):  # the driver's next call of the storage raises it
            self.note_all({number: at})

    def note_trials(self, trials: Sequence[Trial]) -> None:
        """Note that the evaluation of trials begins now.

        The begin of trials that were tried before (lost with a driver, perhaps by its crash) is
        always stored at once, so that the next loss counts only for trials that had begun.
        """
        now = time.time()
        self.note_all({trial.number: now for trial in trials})
        suspects = {trial.number: now for trial in trials if trial.attempts}
        if suspects and not self._kept:
            self._history.storage.begin(self._history.study, suspects)

    def note_all(self, begun: Mapping[int, float]) -> None:
        """Note when trials were begun, in seconds since the epoch; store it at once if ``kept``."""
        self._begun |= begun
        if begun and self._kept:
            self._history.storage.begin(self._history.study, begun)

    def stamp(self, number: int, outcome: Outcome) -> Outcome:
        """Return an outcome with begin and end times filled in if the executor set none."""
        begun_at = self._begun.pop(number, None)
        if outcome.finished_at is not None:
            return outcome
        return replace(outcome, begun_at=outcome.begun_at or begun_at, finished_at=time.time())


LEASE_S = 30.0
"""Seconds without a heartbeat after which a driver is lost and its trials are issued again."""

LOOK_S = 2.0
"""Least interval in seconds between two checks of the other drivers."""

_BEATS = 3
"""Heartbeats per lease, so that a single late one does not end it."""


class Lease:
    """Reservation of a process's trials, valid while its heartbeats arrive; a context manager.

    Clocks of different machines are never compared: an observer measures, by its own clock, how
    long another driver's heartbeat counter has not increased. A driver on this machine is lost as
    soon as its process has ended. Time in which the observer's own heartbeats do not reach the
    storage does not count, because other drivers' heartbeats could not reach it either.

    Args:
        storage: the storage of the study.
        study: the study's name.
        provenance: versions and machine of this driver, stored with it.
        lease_s: seconds without a heartbeat until a driver is lost.
    """

    def __init__(
        self,
        storage: Storage,
        study: str,
        *,
        provenance: Mapping[str, str] | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        self.id = -1
        self.lost: frozenset[int] = frozenset()
        self._storage = storage
        self._study = study
        self._provenance = provenance or {}
        self._lease_s = lease_s
        self._seen: dict[int, tuple[int, float]] = {}
        self._away: frozenset[int] = frozenset()
        self._looked_at = -float("inf")
        self._unanswered_since: float | None = None
        self._blind_until = self._asked_blind = -float("inf")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="dse-lease", daemon=True)

    def __enter__(self) -> Lease:
        pid = os.getpid()
        driver = Driver(
            host=here(), pid=pid, started=read_start_time(pid), provenance=dict(self._provenance)
        )
        self.id = self._storage.enter(self._study, driver)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(DseError):  # otherwise other drivers detect that this one is lost
            self._storage.leave(self._study, self.id)

    @property
    def due(self) -> bool:
        """Whether it is time to check the heartbeats of the other processes."""
        return time.monotonic() - self._looked_at >= min(LOOK_S, self._lease_s / _BEATS)

    def look(self) -> None:
        """Read the other processes' heartbeats, and update which have left and which are lost."""
        self._looked_at = now = time.monotonic()
        others = [d for d in self._storage.drivers(self._study) if d.id != self.id]
        if self._unanswered_late():
            self._blind_until = time.monotonic()
        self._away = frozenset(driver.id for driver in others if driver.left)
        self.lost = frozenset(d.id for d in others if not d.left and self._is_lost(d, now))

    def has_gone(self, driver: int) -> bool:
        """Return whether a process had left or was lost at the last :meth:`look`."""
        return driver in self._away or driver in self.lost

    def was_blind(self) -> bool:
        """Return whether this process's own heartbeats were late since the last call.

        Other processes may then have considered this process lost and taken over its trials.
        """
        since, self._asked_blind = self._asked_blind, self._blind_until
        return self._unanswered_late() or since != self._blind_until

    def free(self, trial: Trial) -> bool:
        """Return whether no live process holds the trial, so that it may be taken."""
        return trial.worker is None or self.has_gone(trial.worker)

    def _is_lost(self, driver: Driver, now: float) -> bool:
        beat, since = self._seen.get(driver.id, (-1, now))
        if beat != driver.beat:
            since = now
        self._seen[driver.id] = driver.beat, since
        return now - max(since, self._blind_until) >= self._lease_s or gone(driver)

    def _unanswered_late(self) -> bool:
        """Return whether the storage is overdue to acknowledge a heartbeat of this driver."""
        since = self._unanswered_since
        return since is not None and self._is_late(since)

    def _is_late(self, since: float) -> bool:
        """Return whether more than one heartbeat interval has passed since the time ``since``."""
        return time.monotonic() - since > self._lease_s / _BEATS

    def _beat(self) -> None:
        while not self._ended.wait(self._lease_s / _BEATS):
            since = self._unanswered_since or time.monotonic()
            failed_before = self._unanswered_since is not None
            self._unanswered_since = since
            try:
                self._storage.beat(self._study, self.id)
            except StorageError:  # busy, or temporarily unavailable: retry with the next heartbeat
                continue
            except StudyError:  # the study was deleted
                return
            if failed_before or self._is_late(since):
                self._blind_until = time.monotonic()
            self._unanswered_since = None
