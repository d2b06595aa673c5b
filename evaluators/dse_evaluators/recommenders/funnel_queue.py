"""Waiting of queries in a sequence of stages with constant service times and several servers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.values import Floats

QUERIES = 2048
"""Simulated queries; the first eighth, in which the queues fill, does not count."""

_WARM_UP = QUERIES // 8
_SEED = 0
_AT_ONCE = 256  # designs


def simulate_p99(rate: Floats, services: Sequence[Floats], servers: Sequence[Floats]) -> Floats:
    """Return the 99th percentile of the time of a query, (n,), under Poisson arrivals.

    All designs have the same sequence of arrivals, scaled by their rates. Each stage serves first
    come, first served; the k-th query of a stage with c servers starts when the (k - c)-th ends.

    Args:
        rate: queries a second, (n,).
        services: service time of each stage, (n,); 0 for a stage that a design lacks.
        servers: servers of each stage, (n,), powers of two up to 1,024.
    """
    gaps = np.random.default_rng(_SEED).exponential(size=QUERIES)
    begun = np.cumsum(gaps)
    found = np.empty(len(rate))
    for start in range(0, len(rate), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        arrivals = begun / rate[some, None]  # (b, queries)
        ended = arrivals
        for service, count in zip(services, servers, strict=True):
            ended = _serve(ended, service[some], count[some])
        waits = (ended - arrivals)[:, _WARM_UP:]
        found[some] = np.quantile(waits, 0.99, axis=1)
    return found


def _serve(arrivals: Floats, service: Floats, servers: Floats) -> Floats:
    """Return when each query leaves a stage, (b, queries), in the order of arrival."""
    ended = np.empty_like(arrivals)
    for count in np.unique(servers).astype(int).tolist():
        rows = servers == count
        turns = arrivals[rows].reshape(rows.sum(), -1, count)  # those of a column share a server
        spent = np.arange(turns.shape[1])[:, None] * service[rows, None, None]
        starts = np.maximum.accumulate(turns - spent, axis=1) + spent
        ended[rows] = (starts + service[rows, None, None]).reshape(rows.sum(), -1)
    return ended
