"""Sequence of arrivals of queries that all funnels have, and the percentile of their times."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dse.core.values import Floats

QUERIES = 2048
"""Simulated queries; the first eighth, in which the queues fill, does not count."""

WARM_UP = QUERIES // 8
_SEED = 0
_QUANTILE = 0.99
_PLACE, _SHARE = divmod(_QUANTILE * (QUERIES - WARM_UP - 1), 1)
TOP = QUERIES - WARM_UP - int(_PLACE)
"""Number of the longest times, from the lower neighbour of the percentile on."""


@lru_cache(maxsize=1)
def arrivals() -> Floats:
    """Return arrival times of queries, (queries,), in units of the mean time between arrivals."""
    return np.cumsum(np.random.default_rng(_SEED).exponential(size=QUERIES))


def interpolate(longest: Floats) -> Floats:
    """Return the 99th percentile over all queries, (n,), given only the longest times, (n, k).

    Args:
        longest: times among which the ``TOP`` longest ones are; they are reordered.
    """
    longest.partition([-TOP, 1 - TOP], axis=1)
    low, high = longest[:, -TOP], longest[:, 1 - TOP]
    return np.asarray(low + _SHARE * (high - low))
