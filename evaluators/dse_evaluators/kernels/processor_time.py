"""Measurement of the CPU time of a call, which excludes the time of other processes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dse_evaluators.compression.timing import Timing, median_error

_ROUND_NS = 5_000_000


def processor_s(call: Callable[[], object], timing: Timing) -> tuple[float, float]:
    """Return the CPU seconds of a call on one thread, median over rounds, and the standard error.

    A round is as many calls as fill 5 ms, and at least one. Contention of other processes for
    caches and memory still slows a call down.
    """
    for _ in range(timing.warmup):
        call()
    rounds = np.array([_round_s(call) for _ in range(timing.repeats)])
    return float(np.median(rounds)), median_error(rounds)


def _round_s(call: Callable[[], object]) -> float:
    calls, start = 0, time.thread_time_ns()
    while (spent := time.thread_time_ns() - start) < _ROUND_NS or not calls:
        call()
        calls += 1
    return spent / calls * 1e-9
