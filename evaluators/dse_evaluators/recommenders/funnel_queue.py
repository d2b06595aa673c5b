"""Waiting of queries in a sequence of stages with constant service times and several servers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Ints
from dse_evaluators.recommenders.arrivals import TOP, WARM_UP, arrivals, interpolate
from dse_evaluators.recommenders.funnel_tails import tail_table

_AT_ONCE = 64  # designs, so that their queries fit into the processor's cache
_BLOCKS = 112  # of queries, of which only those with large maxima are sorted


def simulate_p99(rate: Floats, services: Sequence[Floats], servers: Sequence[Floats]) -> Floats:
    """Return the 99th percentile of the time of a query, (n,), under Poisson arrivals.

    The percentile is NaN where a stage is overloaded.

    All designs have the same sequence of arrivals, scaled by their rates. Each stage serves first
    come, first served; the k-th query of a stage with c servers starts when the (k - c)-th ends.

    The time of a query does not depend on the order of the stages. A stage in which no query waits
    behind another one therefore only adds its service time, and is not simulated.

    Args:
        rate: queries a second, (n,).
        services: service time of each stage, (n,); 0 for a stage that a design lacks.
        servers: servers of each stage, (n,), powers of two up to 256.

    Source:
        Friedman: Reduction Methods for Tandem Queuing Systems, 1965 (order of stages with constant
        service times, and stages without waiting).
    """
    times = np.stack(services, axis=1) * rate[:, None]  # (n, stages), in mean times between queries
    counts = np.stack(servers, axis=1).astype(np.int64)
    may_wait = _find_waiting(times, counts)
    kinds = np.where(may_wait, counts, 0)  # designs of a kind are simulated together
    order = np.lexsort(kinds.T)
    changes = np.flatnonzero((kinds[order][1:] != kinds[order][:-1]).any(axis=1)) + 1
    waits = np.zeros(len(rate))
    for rows in np.split(order, changes):
        stages = np.flatnonzero(may_wait[rows[0]]) if len(rows) else np.zeros(0, dtype=np.int64)
        of_kind = stages[np.argsort(counts[rows[0], stages])] if len(stages) else stages
        if len(of_kind):
            waits[rows] = _find_waits(times[rows][:, of_kind], counts[rows[0], of_kind].tolist())
    found = (waits + times.sum(axis=1)) / rate
    return np.where((times < counts).all(axis=1), found, np.nan)


def _find_waits(times: Floats, counts: Sequence[int]) -> Floats:
    """Return the 99th percentile of the waiting time, (n,), of designs with equal servers.

    Args:
        times: service time of each stage, (n, stages), in mean times between queries.
        counts: servers of each stage.
    """
    found = np.full(len(times), np.nan)
    rest = np.flatnonzero((times < counts).all(axis=1))
    if len(counts) == 1:
        table, service = tail_table(counts[0]), times[rest, 0]
        cells = table.find_cells(service / counts[0])
        has = table.has[cells]
        found[rest[has]] = table.quantile(cells[has], service[has])
        rest = rest[~has]
    for start in range(0, len(rest), _AT_ONCE):
        some = rest[start : start + _AT_ONCE]
        found[some] = _simulate(times[some], counts)
    return found


def _find_waiting(times: Floats, counts: Ints) -> NDArray[np.bool_]:
    """Return the stages in which queries may wait, so that they have to be simulated, (n, stages).

    A query leaves a stage of c servers at least one service time after the c-th query before it. At
    another stage with d servers, no query then waits if d is a multiple of c and the service time
    is at most d / c times that of the first stage.
    """
    found: NDArray[np.bool_] = times > _least_gaps()[np.log2(counts).astype(int)]
    load = times / counts
    for one, other in permutations(range(times.shape[1]), 2):
        is_less = load[:, one] < load[:, other]
        is_equal = load[:, one] == load[:, other]
        more = counts[:, one] > counts[:, other]
        same = counts[:, one] == counts[:, other]
        is_less |= is_equal & (more | (same & (one > other)))
        found[:, one] &= ~(is_less & (more | same))
    return found


@lru_cache(maxsize=1)
def _least_gaps() -> Floats:
    """Return the least time between the arrivals of queries that share one of 2 ** i servers."""
    begun = arrivals()
    counts = [1 << power for power in range(WARM_UP.bit_length())]
    return np.array([(begun[count:] - begun[:-count]).min() for count in counts])


def _simulate(times: Floats, counts: Sequence[int]) -> Floats:
    """Return what :func:`_find_waits` returns, (b,), from the times of all queries."""
    begun = arrivals()
    ended = begun[None]  # (b, queries); the first stage has the same arrivals for all designs
    starts = np.empty(0)
    for stage, count in enumerate(counts):
        turns = ended.reshape(len(ended), -1, count).swapaxes(1, 2)  # queries of a server in a row
        spent = np.arange(turns.shape[2]) * times[:, stage, None, None]
        starts = np.empty((len(times), *turns.shape[1:]))
        np.subtract(turns, spent, out=starts)
        np.maximum.accumulate(starts, axis=2, out=starts)
        starts += spent
        if stage < len(counts) - 1:
            starts += times[:, stage, None, None]
            ended = np.ascontiguousarray(starts.swapaxes(1, 2)).reshape(len(times), -1)
    counted = slice(WARM_UP // counts[-1], None)
    waits = starts[:, :, counted] - begun.reshape(-1, counts[-1]).T[:, counted]
    return _quantile(waits.reshape(len(times), -1)) - times[:, :-1].sum(axis=1)


def _quantile(values: Floats) -> Floats:
    """Return the 99th percentile of each row, (b,), linearly interpolated.

    The largest values of a row are in the blocks with the largest maxima; only these are sorted.
    """
    blocks = values.reshape(len(values), -1, _BLOCKS)
    chosen = np.argpartition(blocks.max(axis=1), -TOP, axis=1)[:, -TOP:]
    return interpolate(np.take_along_axis(blocks, chosen[:, None], axis=2).reshape(len(values), -1))
