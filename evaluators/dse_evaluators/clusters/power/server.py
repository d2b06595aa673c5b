"""Power and slowness of a server, by the clock of its devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CLOCK_HZ = 1410e6
"""The highest of an A100."""

BRAKE_HZ = 288e6
"""To which a power brake brings all devices: Patel et al., 2024, by notes on it."""

_EXPONENT = 1.7
"""Of power above idle in the clock; assumed: 1 if voltage stood still, 3 if it followed."""

PROMPT_BOUND = 0.75
TOKEN_BOUND = 0.25
"""The share of the time of reading prompts and of writing that goes with the clock: assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPower:
    """Shares of what a server is provisioned for, and of its time."""

    idle: float
    prompt_share: float
    """Of the time that it is busy, the part in which it reads prompts."""

    def busy_power(self, clock_hz: float) -> float:
        """While it is busy."""
        return self.idle + (1.0 - self.idle) * (clock_hz / CLOCK_HZ) ** _EXPONENT

    def slowness(self, clock_hz: float) -> float:
        """Return how many times as long the server's work takes at a clock."""
        bound = PROMPT_BOUND * self.prompt_share + TOKEN_BOUND * (1.0 - self.prompt_share)
        return 1.0 + bound * (CLOCK_HZ / clock_hz - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """The servers of one priority under one clock.

    Work that takes longer keeps them busy for longer, at most all the time.
    """

    share: float
    """Of all servers of the row."""
    idle: float
    busy: float
    slowness: float

    def power(self, load: float) -> float:
        """Of a row of one server, in servers' worth."""
        return self.share * (self.idle + (self.busy - self.idle) * min(1.0, load * self.slowness))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """Servers over those that the limit is made for, each class under its clock."""

    servers: float
    low: Class
    high: Class

    def power(self, load: float) -> float:
        """The share of the limit that is drawn."""
        return self.servers * (self.low.power(load) + self.high.power(load))

    def load_at(self, power: float) -> float:
        """The busy share at which so much is drawn; infinity, if none draws that much."""
        places = sorted({0.0, 1.0 / self.low.slowness, 1.0 / self.high.slowness, 1.0})
        powers = [self.power(place) for place in places]
        if power >= powers[-1]:
            return float("inf")
        if power < powers[0]:
            return -1.0
        return float(np.interp(power, powers, places))
