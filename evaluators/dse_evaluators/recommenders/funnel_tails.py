"""Table of the longest waits behind one stage: which queries have them, by the stage's load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Ints
from dse_evaluators.recommenders.arrivals import TOP, WARM_UP, arrivals, interpolate

_CELLS = 512
"""Intervals of the load from 0 to 1."""

_QUERIES, _LINES = 40, 6
"""Most queries, and most lines of each, that a table has for an interval."""


@dataclass(frozen=True, slots=True)
class TailTable:
    """Table of waiting times of the queries that may be among the longest, by load interval.

    The wait of a query is the maximum of several linear functions of the service time. The slope of
    each is the number of services that the query waits for. This number grows with the service
    time, so between two service times only the functions with slopes in between count. Likewise, a
    query counts only if its wait at the end of the interval reaches the longest waits at its start.

    Attributes:
        slopes: services that a query waits for, (cells, queries, lines).
        gaps: time since the first of them arrived, (cells, queries, lines).
        has: whether the table has the interval of the load, (cells,).
    """

    slopes: Floats
    gaps: Floats
    has: NDArray[np.bool_]

    def find_cells(self, load: Floats) -> Ints:
        """Return the interval of each load below 1, (n,)."""
        return np.minimum(load * _CELLS, _CELLS - 1).astype(np.int64)

    def quantile(self, cells: Ints, service: Floats) -> Floats:
        """Return the 99th percentile of the waits, (n,).

        Args:
            cells: intervals of the load that the table has, (n,).
            service: service times in mean times between queries, (n,).
        """
        waits = self.slopes[cells] * service[:, None, None]
        waits -= self.gaps[cells]
        return interpolate(waits.max(axis=2))


@lru_cache(maxsize=16)
def tail_table(servers: int) -> TailTable:
    """Return the table of longest waiting times for a stage with a number of servers.

    Args:
        servers: number of servers of the stage, a power of two up to 256.
    """
    turns = arrivals().reshape(-1, servers).T  # (servers, turns): queries of a server in a row
    loads = np.arange(_CELLS + 1) / _CELLS
    slopes = np.zeros((_CELLS, _QUERIES, _LINES))
    gaps = np.zeros((_CELLS, _QUERIES, _LINES))  # queries that do not wait fill the rest
    has = np.zeros(_CELLS, dtype=np.bool_)
    before = _find_waits(turns, 0.0)
    for cell in range(_CELLS):
        after = _find_waits(turns, float(loads[cell + 1]) * servers)
        has[cell] = _fill(slopes[cell], gaps[cell], turns, (before, after))
        before = after
    return TailTable(slopes, gaps, has)


def _find_waits(turns: Floats, service: float) -> tuple[Floats, Ints]:
    """Return the wait of each query, and the number of services that it waits for, (c, turns)."""
    place = np.arange(turns.shape[1])
    idle = turns - place * service
    first = np.maximum.accumulate(idle, axis=1)
    begin = np.maximum.accumulate(np.where(idle == first, place, 0), axis=1)
    return first - idle, place - begin


def _fill(
    slopes: Floats,
    gaps: Floats,
    turns: Floats,
    ends: tuple[tuple[Floats, Ints], tuple[Floats, Ints]],
) -> bool:
    """Write the lines of an interval; return whether there is room for them."""
    counted = slice(WARM_UP // len(turns), None)
    (low, fewest), (high, most) = ends
    longest = np.partition(low[:, counted], -TOP, axis=None)[-TOP]
    server, turn = np.nonzero((high[:, counted] >= longest) & (high[:, counted] > 0))
    turn += counted.start
    count = most[server, turn] - fewest[server, turn] + 1
    if len(server) > _QUERIES or count.max(initial=1) > _LINES:
        return False
    lines = fewest[server, turn, None] + np.minimum(np.arange(_LINES), count[:, None] - 1)
    slopes[: len(server)] = lines
    gaps[: len(server)] = (
        turns[server, turn][:, None] - turns[server[:, None], turn[:, None] - lines]
    )
    return True
