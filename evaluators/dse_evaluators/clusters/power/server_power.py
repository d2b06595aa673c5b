"""Power and slowdown of a server by the clock of its devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse_evaluators.accelerators.devices.devices import highest_clock_of

CLOCK_HZ = highest_clock_of("a100-sxm-80gb")
"""Highest clock of an A100."""

BRAKE_HZ = 288e6
"""Clock to which a power brake lowers all devices: Patel et al., 2024, by notes on it."""

_EXPONENT = 1.7
"""Exponent of power above idle in the clock; assumed: 1 at constant voltage, 3 if it scales too."""

PROMPT_BOUND = 0.75

TOKEN_BOUND = 0.25
"""Shares of the prefill time and of the decode time that scale with the clock: assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPower:
    """Power model of a server: fractions of its provisioned power, as a function of its clock."""

    idle: float
    prompt_share: float
    """Share of the busy time spent on prefill."""

    def busy_power(self, clock_hz: float) -> float:
        """Return the power of a busy server at a clock, as a fraction of its provisioned power."""
        return self.idle + (1.0 - self.idle) * (clock_hz / CLOCK_HZ) ** _EXPONENT

    def slowness(self, clock_hz: float) -> float:
        """Return how many times as long the server's work takes at a clock."""
        bound = PROMPT_BOUND * self.prompt_share + TOKEN_BOUND * (1.0 - self.prompt_share)
        return 1.0 + bound * (CLOCK_HZ / clock_hz - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Servers of one priority class of a row, all at the same clock.

    At a lower clock work takes longer, so that the servers are busy for more of the time, at most
    all of it.
    """

    share: float
    """Share of all servers of the row."""
    idle: float
    busy: float
    slowness: float

    def power(self, load: float) -> float:
        """Return the power of this priority class at a load, per server of the entire row.

        The load is the fraction of time for which uncapped servers are busy; the unit of power is
        the provisioned power of one server.
        """
        return self.share * (self.idle + (self.busy - self.idle) * min(1.0, load * self.slowness))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """Row of servers in two priority classes, each at its own clock.

    ``servers`` is the number of servers divided by the number for which power is provisioned.
    """

    servers: float
    low: Class
    high: Class

    def power(self, load: float) -> float:
        """Return the power of the row at a load, as a fraction of its power limit."""
        return self.servers * (self.low.power(load) + self.high.power(load))

    def load_at(self, power: float) -> float:
        """Return the load (busy fraction) at which the row draws ``power``, relative to its limit.

        The result is infinity if the row never draws more, and -1 if it always does.
        """
        places = sorted({0.0, 1.0 / self.low.slowness, 1.0 / self.high.slowness, 1.0})
        powers = [self.power(place) for place in places]
        if power >= powers[-1]:
            return float("inf")
        if power < powers[0]:
            return -1.0
        return float(np.interp(power, powers, places))


def ladder(inputs: Mapping[str, float]) -> tuple[tuple[float, float], ...]:
    """Return the clocks [Hz] of low- and high-priority servers at each capping level."""
    return (
        (CLOCK_HZ, CLOCK_HZ),
        (inputs["low_clock"], CLOCK_HZ),
        (inputs["lower_clock"], CLOCK_HZ),
        (inputs["lower_clock"], inputs["high_clock"]),
    )


def failure(inputs: Mapping[str, float]) -> str:
    """Return why a power capping policy is infeasible, and by how much; empty if feasible."""
    below = inputs["first_threshold"] - inputs["second_threshold"]
    if below > 0:
        return f"second_threshold is {below:.3g} below first_threshold"
    more_hz = inputs["lower_clock"] - inputs["low_clock"]
    if more_hz > 0:
        return f"lower_clock is {more_hz:.3g} Hz above low_clock"
    over = inputs["hysteresis"] - inputs["first_threshold"]
    if over >= 0:
        return f"caps are never lifted: hysteresis is {over:.3g} above first_threshold"
    return ""
