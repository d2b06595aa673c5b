"""Nearest keys of a datastore, and the distribution of the characters that followed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.formats.arrays import Single

_ITERATIONS = 8
"""Iterations of k-means for the lists of an index."""


@dataclass(frozen=True, slots=True)
class NearestKeys:
    """Nearest neighbours of q queries: squared distances and next characters, (q, k) each.

    ``compared`` is the mean number of keys and of centres that a query is compared with.
    """

    distances: Single
    followers: Ints
    compared: float


def find_neighbours(
    keys: Single, followers: Ints, queries: Single, *, k: int, lists: int, probes: int
) -> NearestKeys:
    """Return the nearest keys of each query.

    Args:
        keys: the keys, (n, d).
        followers: the character after each, (n,).
        queries: the queries, (q, d).
        k: number of neighbours; where fewer are found, the rest are infinitely far.
        lists: lists into which the keys are sorted; 0 compares each query with all keys.
        probes: lists that a query is compared with.
    """
    import faiss

    index: Any = faiss.IndexFlatL2(keys.shape[1])
    compared = float(len(keys))
    if lists:
        index = faiss.IndexIVFFlat(index, keys.shape[1], lists)
        index.cp.niter, index.cp.min_points_per_centroid = _ITERATIONS, 1
        index.nprobe = probes
        index.train(keys)
    index.add(keys)
    counts: Any = faiss.cvar  # its types lack the counters
    counts.indexIVF_stats.reset()
    distances, rows = index.search(queries, k)
    if lists:
        compared = counts.indexIVF_stats.ndis / len(queries) + lists
    distances = np.where(rows < 0, np.inf, distances).astype(np.float32)
    return NearestKeys(distances, followers[rows], compared)


def weigh_followers(found: NearestKeys, targets: Ints, temperature: float) -> Floats:
    """Return the probability that the neighbours give to each query's own next character, (q,).

    Args:
        found: the neighbours.
        targets: the next characters, (q,).
        temperature: squared distance over which a neighbour's weight falls by a factor of e.

    Source:
        Khandelwal et al.: Generalization through Memorization: Nearest Neighbor Language Models,
        ICLR 2020, eq. 2.
    """
    nearest = found.distances.min(axis=1, keepdims=True).astype(np.float64)
    nearest = np.where(np.isfinite(nearest), nearest, 0.0)
    weights = np.exp((nearest - found.distances) / temperature)
    total = weights.sum(axis=1)
    own = np.where(found.followers == targets[:, None], weights, 0.0).sum(axis=1)
    return np.divide(own, total, out=np.zeros_like(own), where=total > 0)
