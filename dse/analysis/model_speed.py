"""Check of whether models are fast enough to evaluate many designs."""

from __future__ import annotations

import time

import numpy as np

from dse.core.problem import Problem

_PROBES = (32, 1024)
_SLOW_S = 0.25
"""Duration, in s, of a probe after which no larger one is tried."""


def quick(problem: Problem, count: int, most_s: float) -> bool:
    """Return whether models evaluate ``count`` designs in at most ``most_s`` seconds.

    The time is extrapolated from probes of a few designs. The result depends on the speed of the
    machine; the values that the models return do not.

    Raises:
        DesignError: the space has no legal design.
    """
    rng = np.random.default_rng(0)
    for size in _PROBES:
        batch = problem.space.sample(size, rng)
        started = time.perf_counter()
        problem.known(batch)
        took_s = time.perf_counter() - started
        if took_s * max(count / size, 1.0) <= most_s:
            return True
        if took_s > _SLOW_S:
            return False
    return False
