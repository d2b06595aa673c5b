"""Clocks at each level of a power capping policy, and the constraints on a policy."""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.clusters.power.server import CLOCK_HZ


def ladder(told: Mapping[str, float]) -> tuple[tuple[float, float], ...]:
    """Return the clocks [Hz] of low- and high-priority servers at each capping level."""
    return (
        (CLOCK_HZ, CLOCK_HZ),
        (told["low_clock"], CLOCK_HZ),
        (told["lower_clock"], CLOCK_HZ),
        (told["lower_clock"], told["high_clock"]),
    )


def fault(told: Mapping[str, float]) -> str:
    """Return why a policy is infeasible, and by how much; empty if it is feasible."""
    below = told["first_threshold"] - told["second_threshold"]
    if below > 0:
        return f"second_threshold is {below:.3g} below first_threshold"
    more_hz = told["lower_clock"] - told["low_clock"]
    if more_hz > 0:
        return f"lower_clock is {more_hz:.3g} Hz above low_clock"
    over = told["hysteresis"] - told["first_threshold"]
    if over >= 0:
        return f"caps are never lifted: hysteresis is {over:.3g} above first_threshold"
    return ""
