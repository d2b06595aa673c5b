"""Clock by which a driver measures time and waits; a simulation substitutes its own."""

from __future__ import annotations

import random
import time


class Clock:
    """Monotonic clock of this process."""

    def now_s(self) -> float:
        """Return the seconds since an arbitrary fixed moment; only differences have a meaning."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        time.sleep(seconds)

    def draw_s(self, low_s: float, high_s: float) -> float:
        """Draw a uniform waiting time, so that drivers that start together do not synchronize."""
        return random.uniform(low_s, high_s)  # noqa: S311 - no secret, and never recorded
