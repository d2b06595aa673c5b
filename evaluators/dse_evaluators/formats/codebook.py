"""Codebook quantization: values become the nearest k-means centroid of their tensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single, check_finite
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Plain
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.optimal_clusters import optimal_edges
from dse_evaluators.formats.scaling import Field, Sides
from dse_evaluators.formats.tables import CodeTable

Sums = NDArray[np.float64]

_SORTED = 1 << 18  # largest number of values that are clustered without bucketing
_LOST = 12  # low bits of a float32 that bucketing ignores
_AT_ONCE = 1 << 22
_ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebook:
    """Codebook of 2^bits float32 centroids from Lloyd's algorithm, evenly spaced at first.

    With ``exact``, the centroids have the least squared error that is possible. In large tensors,
    values that agree in their upper 20 bits are assigned together; the centroids are still the
    means of the values themselves.

    Source:
        Han, Mao and Dally, Deep Compression, 2016, section 3 (linear initialisation).
    """

    bits: int
    exact: bool = False
    span: Span = "tensor"

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        return (Field(name="book", part="codebook", bits=32, count=2**self.bits),)

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        book = clusters(blocks.ravel(), 2**self.bits, exact=self.exact)
        sides = {"book": book.view(np.uint32)}
        return sides, self.read(sides, grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:  # noqa: ARG002
        book = sides["book"].view(np.float32)
        numbers, first = np.unique(book, return_index=True)
        places = first.astype(np.uint32)
        return Plain(grid=CodeTable.of(numbers, self.bits, places=places))


def clusters(
    values: Single,  # (n,)
    count: int,
    *,
    exact: bool = False,
) -> Single:
    """Return the centroids of a k-means clustering of the values, ascending, (count,).

    Args:
        values: the values.
        count: number of centroids.
        exact: whether to find the clustering of the least squared error, instead of the clustering
            that Lloyd's algorithm reaches from even spacing.

    Raises:
        EvaluationError: a value is infinite or NaN.
    """
    check_finite(values)
    points, weights, totals = _points(values)
    if len(points) <= count:
        return np.append(points, np.full(count - len(points), points[-1])).astype(np.float32)
    passed = np.append(0, np.cumsum(weights))
    reached = np.append(0, np.cumsum(totals))
    if exact:
        edges = optimal_edges(points, weights, count)
        return (np.diff(reached[edges]) / np.diff(passed[edges])).astype(np.float32)
    means = np.linspace(points[0], points[-1], count)
    for _ in range(_ROUNDS):
        ends = np.searchsorted(points, (means[1:] + means[:-1]) / 2, side="right")
        edges = np.concatenate([[0], ends, [len(points)]])
        members = np.diff(passed[edges])
        moved = np.where(members > 0, np.diff(reached[edges]) / np.maximum(members, 1), means)
        if np.array_equal(moved, means):
            break
        means = moved
    return means.astype(np.float32)


def _points(values: Single) -> tuple[Sums, Sums, Sums]:
    """Return the distinct points of the values, ascending, with count and sum of values at each."""
    if values.size <= _SORTED:
        points, counts = np.unique(values.astype(np.float64), return_counts=True)
        return points, counts.astype(np.float64), points * counts
    weights: Sums = np.zeros(1 << (32 - _LOST))
    totals: Sums = np.zeros(len(weights))
    for start in range(0, values.size, _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        bucket = (part.view(np.uint32) >> np.uint32(_LOST)).astype(np.intp)
        weights += np.bincount(bucket, minlength=len(weights))
        totals += np.bincount(bucket, weights=part, minlength=len(totals))
    used = np.flatnonzero(weights)
    means = totals[used] / weights[used]
    order = np.argsort(means, kind="stable")
    used = used[order]
    return means[order], weights[used], totals[used]
