"""Detection of which drivers (processes that run a study) are alive, by their heartbeats."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock

from dse.core.trial import Driver
from dse.study.lease import LEASE_S
from dse.study.liveness import gone


class Presence:
    """Monitor of drivers' heartbeat counters.

    A driver counts as alive if its counter has risen recently by this process's own clock.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, float]] = {}
        self._lock = Lock()

    def there(self, study: str, drivers: Sequence[Driver]) -> list[Driver]:
        """Return the drivers that have not signed off and whose heartbeat has risen recently."""
        now = time.monotonic()
        return [one for one in drivers if not one.left and self._beats(study, one, now)]

    def _beats(self, study: str, driver: Driver, now: float) -> bool:
        if gone(driver):
            return False
        with self._lock:
            beat, since = self._seen.get((study, driver.id), (-1, now))
            if beat != driver.beat:
                since = now
            self._seen[study, driver.id] = driver.beat, since
        return now - since < LEASE_S
