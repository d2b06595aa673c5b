"""The codebook of least squared error, against every clustering and against a slow recursion."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dse_evaluators.formats.names import format_of
from dse_evaluators.formats.optimal_clusters import optimal_edges

RNG = np.random.default_rng(3)
DRAWN = {
    "normal": RNG.standard_normal(240),
    "tails": RNG.standard_t(1.5, 240),
    "lumps": RNG.integers(0, 5, 240) * 10.0 + RNG.standard_normal(240),
    "far from zero": 1e4 + RNG.standard_normal(240),
}


def error_of(values, edges):
    return sum(((part - part.mean()) ** 2).sum() for part in np.split(values, edges[1:-1]))


def least_by_recursion(values, count):
    """Return the least error by E(k, j) = min over i of E(k - 1, i) + cost(i, j)."""
    size = len(values)
    cost = np.zeros((size + 1, size + 1))
    for start in range(size):
        part = values[start:] - values[start]
        number = np.arange(1, size - start + 1)
        cost[start, start + 1 :] = np.cumsum(part**2) - np.cumsum(part) ** 2 / number
    least = cost[0].copy()
    for _ in range(count - 1):
        table = least[:, None] + np.where(np.tri(size + 1, k=-1).T, cost, np.inf)
        least = np.append(np.inf, table.min(axis=0)[1:])
    return least[size]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_error_is_the_least_of_every_clustering(count):
    values = np.sort(RNG.standard_normal(10))
    weights = RNG.integers(1, 4, 10)
    every = (
        error_of(values.repeat(weights), np.append(0, np.cumsum(weights))[[0, *cuts, 10]])
        for cuts in combinations(range(1, 10), count - 1)
    )
    edges = optimal_edges(values, weights.astype(float), count)
    found = error_of(values.repeat(weights), np.append(0, np.cumsum(weights))[edges])
    assert len(edges) == count + 1
    assert found == pytest.approx(min(every), rel=1e-12)


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("count", [2, 7, 16, 64])
def test_error_is_that_of_the_slow_recursion(kind, count):
    values = np.sort(DRAWN[kind])
    edges = optimal_edges(values, np.ones(240), count)
    wanted = least_by_recursion(values, count)
    assert error_of(values, edges) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("bits", [2, 3, 4])
def test_exact_codebook_has_no_more_error_than_lloyds(kind, bits):
    values = DRAWN[kind].astype(np.float32)
    lloyd, exact = (
        np.square(format_of(text).quantize(values) - values.astype(np.float64)).sum()
        for text in (f"kmeans:{bits}", f"kmeans:{bits},exact")
    )
    assert exact <= lloyd * (1 + 1e-6)


def test_exact_codebook_mends_a_bad_start_of_lloyds():
    values = np.append(RNG.standard_normal(1000) / 100, 10.0).astype(np.float32)
    lloyd, exact = (
        np.square(format_of(text).quantize(values) - values.astype(np.float64)).sum()
        for text in ("kmeans:2", "kmeans:2,exact")
    )
    assert exact < lloyd / 4


def test_exact_codebook_of_few_values_and_bytes_are_those_of_the_format():
    form = format_of("kmeans:3,exact")
    values = RNG.standard_normal((64, 32)).astype(np.float32)
    data = form.pack(form.encode(values))
    assert len(data) == form.bits(values.shape).total_bytes
    assert np.array_equal(form.decode(form.unpack(data, values.shape)), form.quantize(values))
    few = np.array([3.0, 3.0, -1.0], dtype=np.float32)
    assert np.array_equal(form.quantize(few), few)
