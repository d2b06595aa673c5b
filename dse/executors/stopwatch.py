"""Stopwatch that excludes waiting time."""

from __future__ import annotations

import time


class Stopwatch:
    """Stopwatch that starts when created, and can be stopped and resumed.

    Time while it is stopped does not count.
    """

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._stopped: float | None = None

    @property
    def stopped(self) -> bool:
        """Whether the stopwatch is stopped."""
        return self._stopped is not None

    @property
    def spent_s(self) -> float:
        """Counted time in seconds."""
        return (time.monotonic() if self._stopped is None else self._stopped) - self._since

    def stop(self) -> None:
        """Stop counting time; do nothing if the stopwatch is already stopped."""
        if self._stopped is None:
            self._stopped = time.monotonic()

    def pass_over(self, seconds: float) -> None:
        """Exclude a waiting time in seconds from the counted time."""
        self._since += seconds

    def go_on(self) -> None:
        """Resume counting time; do nothing if the stopwatch runs."""
        if self._stopped is not None:
            self._since += time.monotonic() - self._stopped
            self._stopped = None
