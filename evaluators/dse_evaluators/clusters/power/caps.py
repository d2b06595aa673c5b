"""The clocks of each level of a policy, and what makes a policy none."""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.clusters.power.server import CLOCK_HZ


def ladder(told: Mapping[str, float]) -> tuple[tuple[float, float], ...]:
    """Clocks of low and high priority, in hertz, at each of the governor's levels."""
    return (
        (CLOCK_HZ, CLOCK_HZ),
        (told["low_clock"], CLOCK_HZ),
        (told["lower_clock"], CLOCK_HZ),
        (told["lower_clock"], told["high_clock"]),
    )


def fault(told: Mapping[str, float]) -> str:
    """Return why such a policy cannot exist, and by how much; empty if it can."""
    below = told["first_threshold"] - told["second_threshold"]
    if below > 0:
        return f"the second threshold is {below:.3g} below the first"
    more_hz = told["lower_clock"] - told["low_clock"]
    if more_hz > 0:
        return f"the second clock is {more_hz:.3g} Hz above the first"
    over = told["hysteresis"] - told["first_threshold"]
    if over >= 0:
        return f"caps are never lifted: the hysteresis is {over:.3g} above the first threshold"
    return ""
