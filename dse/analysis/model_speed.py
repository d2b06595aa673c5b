"""Check of whether a model is quick enough to evaluate many designs at once."""

from __future__ import annotations

import time

import numpy as np

from dse.core.problem import Problem

_PROBES = (32, 1024)
_SLOW_S = 0.25
"""A probe that takes longer is the last one."""


def quick(problem: Problem, count: int, most_s: float) -> bool:
    """Return whether modelling ``count`` designs takes at most ``most_s`` seconds.

    The time is extrapolated from a few designs.

    What it answers depends on the machine; what is then told of designs does not.

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
