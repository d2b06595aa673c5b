"""Vectors and queries of a search, checked for a distance, with the exact nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.retrieval.vector_files import QUERIES, VECTORS

DISTANCES = ("l2", "ip", "cosine")
_BLOCK = 1 << 14  # vectors that are compared at once
_SPARE = 8  # candidates beyond k that are ranked again in double precision
_ROUNDING = 1e-6
"""Difference of two losses that counts as a tie, relative to the squared norms: that of sums in
single precision."""


@dataclass(frozen=True, slots=True)
class SearchData:
    """Vectors to index, (n, d), queries, (q, d), and distances of their k-th neighbours, (q,).

    A distance is the squared Euclidean distance, or the negative inner product; under ``cosine``
    all vectors have length 1. ``is_held_out`` is whether the queries were taken out of the vectors.
    """

    vectors: Single
    queries: Single
    distance: str
    k: int
    is_held_out: bool
    kth_losses: Floats

    @property
    def is_l2(self) -> bool:
        """Whether the distance is Euclidean; otherwise it is an inner product."""
        return self.distance == "l2"

    def recall(self, found: Ints) -> float:
        """Return the mean share of the k nearest neighbours that a search found.

        A found vector counts if it is no farther than the k-th neighbour, so that ties count.

        Args:
            found: rows of vectors, (q, k); -1 where the search found fewer.

        Source:
            Aumüller, Bernhardsson, Faithfull: ANN-Benchmarks, 2018, section 2.1.
        """
        losses = _losses(self.vectors, self.queries, np.maximum(found, 0), is_l2=self.is_l2)
        norms = (self.queries.astype(np.float64) ** 2).sum(axis=1)
        norms += (
            (self.vectors[np.maximum(found, 0)].astype(np.float64) ** 2).sum(axis=2).max(axis=1)
        )
        near = losses <= (self.kth_losses + _ROUNDING * norms)[:, None]
        return float((near & (found >= 0)).mean())


def prepare_search(
    vectors: Single, queries: Single | None, *, distance: str, k: int, held_out: int
) -> SearchData:
    """Return the data of a search; without queries, some vectors are held out as queries.

    The held-out vectors are drawn at random with a fixed seed. They are not indexed.

    Args:
        vectors: the vectors, (n, d).
        queries: the queries, (q, d), if there are any.
        distance: ``l2``, ``ip`` or ``cosine``.
        k: number of neighbours.
        held_out: number of vectors to hold out.

    Raises:
        SpecError: dimensions differ, k or ``held_out`` is too large, or a vector has no direction.
    """
    is_held_out = queries is None
    if queries is None:
        vectors, queries = _hold_out(vectors, held_out)
    if vectors.shape[1] != queries.shape[1]:
        raise SpecError(
            f"the queries have {queries.shape[1]} dimensions, and the vectors {vectors.shape[1]}",
            hint="embed both with the same model",
            part=[QUERIES],
        )
    if k > len(vectors):
        after = f" after {held_out} were held out" if is_held_out else ""
        problem = f"k is {k}, and there are {len(vectors)} vectors{after}"
        raise SpecError(problem, hint=f"at most {len(vectors)}", part=["k"])
    if distance == "cosine":
        vectors, queries = _normalize(vectors, VECTORS), _normalize(queries, QUERIES)
    kth = _kth_losses(vectors, queries, k, is_l2=distance == "l2")
    return SearchData(vectors, queries, distance, k, is_held_out, kth)


def _hold_out(vectors: Single, count: int) -> tuple[Single, Single]:
    if count >= len(vectors):
        problem = f"held_out is {count}, and there are {len(vectors)} vectors"
        raise SpecError(problem, hint=f"at most {len(vectors) - 1}", part=["held_out"])
    chosen = np.zeros(len(vectors), np.bool_)
    chosen[np.random.default_rng(0).permutation(len(vectors))[:count]] = True
    return vectors[~chosen], vectors[chosen]


def _normalize(vectors: Single, option: str) -> Single:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    zero = np.flatnonzero(lengths == 0)
    if len(zero):
        raise SpecError(
            f"{len(zero)} of {len(vectors)} {option} are zero, the first in row {zero[0]}: they "
            "have no cosine",
            hint="remove them, or choose the distance l2 or ip",
            part=[option],
        )
    return np.ascontiguousarray(vectors / lengths[:, None], np.float32)


def _kth_losses(vectors: Single, queries: Single, k: int, *, is_l2: bool) -> Floats:
    """Return the loss of each query's k-th nearest neighbour, (q,), by comparing with all."""
    kept = min(k + _SPARE, len(vectors))
    rows: Ints = np.empty((len(queries), 0), np.int64)
    losses: Single = np.empty((len(queries), 0), np.float32)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        found = -(queries @ block.T)
        if is_l2:  # without the query's own norm, which is the same for all
            found = 2 * found + np.einsum("nd,nd->n", block, block)
        places = np.broadcast_to(np.arange(start, start + len(block)), found.shape)
        losses, rows = np.hstack([losses, found]), np.hstack([rows, places])
        if losses.shape[1] > kept:
            best = np.argpartition(losses, kept - 1, axis=1)[:, :kept]
            losses = np.take_along_axis(losses, best, axis=1)
            rows = np.take_along_axis(rows, best, axis=1)
    exact = _losses(vectors, queries, rows, is_l2=is_l2)
    return np.partition(exact, k - 1, axis=1)[:, k - 1]


def _losses(vectors: Single, queries: Single, rows: Ints, *, is_l2: bool) -> Floats:
    """Return the losses of chosen vectors, (q, k), in double precision."""
    found = np.empty(rows.shape)
    for query, chosen in enumerate(rows):  # (k, d) at a time, which fits into memory
        near, one = vectors[chosen].astype(np.float64), queries[query].astype(np.float64)
        found[query] = ((near - one) ** 2).sum(axis=1) if is_l2 else -(near @ one)
    return found
