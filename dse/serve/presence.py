"""Detection of the drivers at work by their heartbeat, as seen by an observer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock

from dse.core.trial import Driver
from dse.study.lease import LEASE_S
from dse.study.liveness import gone


class Presence:
    """Monitor that measures, by its own clock, how long a driver's heartbeat has not risen."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, float]] = {}
        self._lock = Lock()

    def there(self, study: str, drivers: Sequence[Driver]) -> list[Driver]:
        """Return the drivers that have not left and whose heartbeat is recent."""
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
