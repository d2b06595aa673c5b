"""The time that a driver measures and waits by; a simulation has another."""

from __future__ import annotations

import random
import time


class Clock:
    """The monotonic clock of this process."""

    def now_s(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def draw_s(self, low_s: float, high_s: float) -> float:
        """Draw a time to wait, so that drivers which begin together do not keep step."""
        return random.uniform(low_s, high_s)  # noqa: S311 - no secret, and never recorded
