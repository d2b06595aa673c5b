"""Time spent, without the time spent waiting."""

from __future__ import annotations

import time


class Stopwatch:
    """Runs from the start; time in which it is stopped does not count."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._stopped: float | None = None

    @property
    def stopped(self) -> bool:
        """True while no time counts."""
        return self._stopped is not None

    @property
    def spent_s(self) -> float:
        """Time counted so far, in seconds."""
        return (time.monotonic() if self._stopped is None else self._stopped) - self._since

    def stop(self) -> None:
        """From now on no time counts."""
        if self._stopped is None:
            self._stopped = time.monotonic()

    def pass_over(self, seconds: float) -> None:
        """Count that much less: it was spent waiting."""
        self._since += seconds

    def go_on(self) -> None:
        """From now on time counts again."""
        if self._stopped is not None:
            self._since += time.monotonic() - self._stopped
            self._stopped = None
