"""Lease of a driver on a study: registration, heartbeats, and detection of lost drivers."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Thread

from dse.core.trial import Driver, Trial
from dse.errors import DseError, StorageError, StudyError
from dse.protocols import Storage
from dse.study.liveness import gone, here
from dse.system.process_tree import read_start_time

LEASE_S = 30.0
"""Seconds without a heartbeat after which a driver is lost and its trials are issued again."""

LOOK_S = 2.0
"""Least interval in seconds between two checks of the other drivers."""

_BEATS = 3
"""Heartbeats per lease, so that a single late one does not end it."""


class Lease:
    """Claim of a driver to its trials, valid while its heartbeats arrive; a context manager.

    Clocks of different machines are never compared: an observer measures, by its own clock, how
    long another driver's heartbeat counter has not increased. A driver on this machine is lost as
    soon as its process has ended. Time in which the observer's own heartbeats do not reach the
    storage does not count, because those of the others could not either.

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
        self._ended = Event()
        self._thread = Thread(target=self._beat, name="dse-lease", daemon=True)

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
        """Whether it is time to check the other drivers' heartbeats."""
        return time.monotonic() - self._looked_at >= min(LOOK_S, self._lease_s / _BEATS)

    def look(self) -> None:
        """Read the other drivers' heartbeats, and update which have left and which are lost."""
        self._looked_at = now = time.monotonic()
        others = [d for d in self._storage.drivers(self._study) if d.id != self.id]
        if self._unanswered_late():
            self._blind_until = time.monotonic()
        self._away = frozenset(driver.id for driver in others if driver.left)
        self.lost = frozenset(d.id for d in others if not d.left and self._is_lost(d, now))

    def has_gone(self, driver: int) -> bool:
        """Return whether a driver had left or was lost at the last :meth:`look`."""
        return driver in self._away or driver in self.lost

    def was_blind(self) -> bool:
        """Return whether this driver's own heartbeats were late since the last call.

        Other drivers may then have considered this one lost and claimed its trials.
        """
        since, self._asked_blind = self._asked_blind, self._blind_until
        return self._unanswered_late() or since != self._blind_until

    def free(self, trial: Trial) -> bool:
        """Return whether no live driver holds the trial, so that it may be claimed."""
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
        """Return whether more than one heartbeat interval has passed since the time ``since_s``."""
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
