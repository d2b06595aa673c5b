"""One-dimensional k-means with the least squared error, by dynamic programming."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats, Ints


def optimal_edges(
    points: Floats,  # (n,), ascending
    weights: Floats,  # (n,)
    count: int,
) -> Ints:
    """Return the indices that bound the clusters of least squared error, (count + 1,).

    The start of the last cluster never moves to the left if points are added on the right.
    Therefore the best start for the middle of an interval bounds the starts for both halves, and
    the work is of order count n log n.

    Args:
        points: distinct points.
        weights: number of values at each point.
        count: number of clusters, at most n.

    Source:
        Gronlund, Larsen, Mathiasen, Nielsen, Schneider, Song: Fast Exact k-Means, k-Medians and
        Bregman Divergence Clustering in 1D, 2017, sections 2.1 and 2.2 (divide and conquer).
    """
    costs = _Costs(points, weights)
    size = len(points)
    ends = np.arange(1, size + 1)
    best = costs.between(np.zeros(size, dtype=np.intp), ends)  # of one cluster, to each end
    begins = []
    for clusters in range(2, count + 1):
        best, first = _add_cluster(costs, best, clusters)
        begins.append(first)
    edges = [size]
    for first in reversed(begins):
        edges.append(int(first[edges[-1] - 1]))
    return np.array([*edges, 0][::-1])


class _Costs:
    """Squared errors of clusters of consecutive points, from prefix sums."""

    def __init__(self, points: Floats, weights: Floats) -> None:
        centred = points - np.average(points, weights=weights)  # so that little cancels
        parts = (weights, weights * centred, weights * centred**2)
        self._sums = [np.append(0.0, np.cumsum(part)) for part in parts]

    def between(self, starts: Ints, ends: Ints) -> Floats:
        """Return the squared error of the points of [start, end) about their mean."""
        number, total, square = (part[ends] - part[starts] for part in self._sums)
        return np.asarray(np.maximum(square - total**2 / number, 0.0))


def _add_cluster(costs: _Costs, best: Floats, clusters: int) -> tuple[Floats, Ints]:
    """Return least errors to each end with one cluster more, and where the last cluster begins.

    Entries of fewer points than clusters have an infinite error.
    """
    size = len(best)
    found, first = np.full(size, np.inf), np.zeros(size, dtype=np.intp)
    # Intervals of ends (last point, inclusive), with the range of places where a cluster may begin.
    left, right = np.array([clusters - 1]), np.array([size - 1])
    low, high = np.array([clusters - 1]), np.array([size - 1])
    while len(left):
        middle = (left + right) // 2
        begin, error = _best_begin(costs, best, middle, (low, np.minimum(high, middle)))
        found[middle], first[middle] = error, begin
        left, right = np.concatenate([left, middle + 1]), np.concatenate([middle - 1, right])
        low, high = np.concatenate([low, begin]), np.concatenate([begin, high])
        stays = left <= right
        left, right, low, high = (one[stays] for one in (left, right, low, high))
    return found, first


def _best_begin(
    costs: _Costs, best: Floats, ends: Ints, ranges: tuple[Ints, Ints]
) -> tuple[Ints, Floats]:
    """Return where the last cluster begins best for each end, and the error, by trying a range."""
    low, high = ranges
    lengths = high - low + 1
    starts = np.append(0, np.cumsum(lengths)[:-1])
    places = np.arange(lengths.sum()) - np.repeat(starts - low, lengths)
    errors = best[places - 1] + costs.between(places, np.repeat(ends, lengths) + 1)
    least = np.minimum.reduceat(errors, starts)
    hits = np.flatnonzero(errors == np.repeat(least, lengths))
    of_end = np.searchsorted(starts, hits, side="right") - 1
    _, chosen = np.unique(of_end, return_index=True)
    return places[hits[chosen]], least
