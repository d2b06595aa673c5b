"""Measurement of a call's duration: warm-up, repeated rounds, standard error of the median."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dse.evaluation.timing.median_interval import median_error

_ROUND_S = 5e-3
"""Minimum duration of a round, so that a disturbance of successive calls stays in one round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Numbers of warm-up calls, of timed rounds, and of images in a call."""

    warmup: int
    repeats: int
    batch: int


def time_call(call: Callable[[], object], timing: Timing) -> tuple[float, float]:
    """Return the seconds per call, as the median of the rounds' medians, and the standard error.

    The error covers the variation within this measurement, not a machine that is slow throughout.

    Source:
        Law, Simulation Modeling and Analysis, 5th edition, 2015, chapter 9, batch means:
        medians of batches of neighbouring samples are nearly independent, unlike the samples.
    """
    for _ in range(timing.warmup):
        call()
    rounds = np.array([_round_s(call) for _ in range(timing.repeats)])
    return float(np.median(rounds)), median_error(rounds)


def _round_s(call: Callable[[], object]) -> float:
    """Return the median seconds per call in one timed round of at least one call."""
    seconds: list[float] = []
    end = time.perf_counter() + _ROUND_S
    while not seconds or time.perf_counter() < end:
        start = time.perf_counter_ns()
        call()
        seconds.append((time.perf_counter_ns() - start) * 1e-9)
    return float(np.median(seconds))
