"""A driver's place on a study: it enters, beats while it lives, and sees which others are lost."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Thread

from dse.core.trial import Driver, Trial
from dse.errors import DseError, StorageError, StudyError
from dse.protocols import Storage
from dse.study.liveness import gone, here, read_start_ticks

LEASE_S = 30.0
"""A driver whose beat has not risen for so long is lost, and its trials are issued again."""

LOOK_S = 2.0
"""How often to look at the others at most."""

_BEATS = 3
"""Beats in a lease: one that comes late loses nothing."""


class Lease:
    """Lease by which a driver holds its trials; enter it as a context.

    No clock is compared with another machine's: who watches counts how long, by its own clock, it
    has not seen a beat rise. A driver of this machine is lost as soon as its process is gone. Time
    in which its own beats do not get through counts for nothing: theirs could not either.

    Args:
        storage: where the study is.
        study: its name.
        provenance: what is kept of this driver.
        lease_s: see :data:`LEASE_S`.
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
            host=here(), pid=pid, started=read_start_ticks(pid), provenance=dict(self._provenance)
        )
        self.id = self._storage.enter(self._study, driver)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(DseError):  # who cannot say goodbye is found to be gone
            self._storage.leave(self._study, self.id)

    @property
    def due(self) -> bool:
        """True if it is time to look at the others."""
        return time.monotonic() - self._looked_at >= min(LOOK_S, self._lease_s / _BEATS)

    def look(self) -> None:
        """See who has left, and who is lost."""
        self._looked_at = now = time.monotonic()
        others = [d for d in self._storage.drivers(self._study) if d.id != self.id]
        if self._unanswered_late():
            self._blind_until = time.monotonic()
        self._away = frozenset(driver.id for driver in others if driver.left)
        self.lost = frozenset(d.id for d in others if not d.left and self._is_lost(d, now))

    def has_gone(self, driver: int) -> bool:
        """Return whether a driver was away or lost at the last look."""
        return driver in self._away or driver in self.lost

    def was_blind(self) -> bool:
        """Return whether beats were late since the last call: others may have taken over."""
        since, self._asked_blind = self._asked_blind, self._blind_until
        return self._unanswered_late() or since != self._blind_until

    def free(self, trial: Trial) -> bool:
        """Return whether the trial has no driver, or one away or lost at the last look."""
        return trial.worker is None or self.has_gone(trial.worker)

    def _is_lost(self, driver: Driver, now: float) -> bool:
        beat, since = self._seen.get(driver.id, (-1, now))
        if beat != driver.beat:
            since = now
        self._seen[driver.id] = driver.beat, since
        return now - max(since, self._blind_until) >= self._lease_s or gone(driver)

    def _unanswered_late(self) -> bool:
        """True while a beat that should have got through has not."""
        since = self._unanswered_since
        return since is not None and self._is_late(since)

    def _is_late(self, since: float) -> bool:
        """True if a beat that was due then should have got through by now."""
        return time.monotonic() - since > self._lease_s / _BEATS

    def _beat(self) -> None:
        while not self._ended.wait(self._lease_s / _BEATS):
            since = self._unanswered_since or time.monotonic()
            failed_before = self._unanswered_since is not None
            self._unanswered_since = since
            try:
                self._storage.beat(self._study, self.id)
            except StorageError:  # busy, or away for a while: the next beat may get through
                continue
            except StudyError:  # the study was deleted
                return
            if failed_before or self._is_late(since):
                self._blind_until = time.monotonic()
            self._unanswered_since = None
