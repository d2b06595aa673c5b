"""Search for the nearest of many vectors by inverted lists and short codes: its recall, measured.

As a program it reads a design as JSON from stdin and writes the recall.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import load_sample_image

from dse.core.values import Floats, Ints

VECTORS, QUERIES, NEAREST = 8192, 256, 10
_ROUNDS = 8  # of k-means
_SIDE = 8  # of a patch, in pixels


@dataclass(frozen=True, slots=True)
class Lists:
    """The cell of each vector, and how near each cell is to each query: 0 for the nearest."""

    centres: Floats  # (cells, d)
    cell: Ints  # (n,)
    rank: Ints  # (q, cells)


def recall(design: Mapping[str, Any]) -> dict[str, float]:
    """The share of the ten nearest vectors that are found, over all queries.

    Source:
        H. Jegou, M. Douze, C. Schmid: Product Quantization for Nearest Neighbor Search, IEEE
        TPAMI 2011, section IV (lists, codes of residuals); re-ranking by the vectors themselves.
    """
    cells, probes = int(design["cells"]), int(design["probes"])
    lists = _lists(cells)
    coded = (int(design["subspaces"]), int(design["code_bits"]), bool(design["rotated"]))
    distances = np.where(lists.rank[:, lists.cell] < probes, _estimates(cells, *coded), np.inf)
    kept = max(NEAREST, int(design["rerank"]))
    found = np.argpartition(distances, kept, axis=1)[:, :kept]
    if kept > NEAREST:
        exact = np.take_along_axis(_exact(), found, axis=1)
        exact[np.isinf(np.take_along_axis(distances, found, axis=1))] = np.inf
        best = np.argpartition(exact, NEAREST, axis=1)[:, :NEAREST]
        found = np.take_along_axis(found, best, axis=1)
    listed = np.isfinite(np.take_along_axis(distances, found, axis=1))
    hits = (found[:, :, None] == _nearest()[:, None, :]).any(axis=2) & listed
    return {"recall": float(hits.mean())}


@cache
def _vectors() -> tuple[Floats, Floats]:
    """Patches of two photographs without their mean: the vectors, and the queries."""
    patches = []
    for name in ("china.jpg", "flower.jpg"):
        grey = load_sample_image(name).mean(axis=2)
        windows = np.lib.stride_tricks.sliding_window_view(grey, (_SIDE, _SIDE))[::3, ::3]
        patches.append(windows.reshape(-1, _SIDE * _SIDE))
    every = np.concatenate(patches)
    chosen = np.random.default_rng(0).permutation(len(every))[: VECTORS + QUERIES]
    found = every[chosen] - every[chosen].mean(axis=1, keepdims=True)
    return found[:VECTORS], found[VECTORS:]


@cache
def _exact() -> Floats:
    vectors, queries = _vectors()
    return _distances(queries, vectors)


@cache
def _nearest() -> Ints:
    return np.argpartition(_exact(), NEAREST, axis=1)[:, :NEAREST]


@cache
def _lists(cells: int) -> Lists:
    vectors, queries = _vectors()
    centres = _clustered(vectors, cells)
    rank = _distances(queries, centres).argsort(axis=1).argsort(axis=1)
    return Lists(centres, _distances(vectors, centres).argmin(axis=1), rank)


@lru_cache(maxsize=8)
def _estimates(cells: int, subspaces: int, code_bits: int, rotated: bool) -> Floats:  # noqa: FBT001
    """Squared distances of the queries from what the codes stand for, (q, n).

    Source:
        T. Ge et al., Optimized Product Quantization, CVPR 2013, section 3.2, for the rotation:
        principal axes, dealt out so that the subspaces' variances have like products.
    """
    vectors, queries = _vectors()
    lists = _lists(cells)
    residuals = vectors - lists.centres[lists.cell]
    turn = _rotation(residuals, subspaces) if rotated else np.eye(vectors.shape[1])
    turned = residuals @ turn
    coded = np.empty_like(turned)
    for columns in np.split(np.arange(turned.shape[1]), subspaces):
        book = _clustered(turned[:, columns], 2**code_bits)
        coded[:, columns] = book[_distances(turned[:, columns], book).argmin(axis=1)]
    return _distances(queries, lists.centres[lists.cell] + coded @ turn.T)


def _rotation(residuals: Floats, subspaces: int) -> Floats:
    values, axes = np.linalg.eigh(np.cov(residuals.T))
    logs = np.log(np.maximum(values, 1e-9))
    most = len(values) // subspaces
    dealt: list[list[int]] = [[] for _ in range(subspaces)]
    for axis in np.argsort(-logs).tolist():
        open_ones = [one for one in dealt if len(one) < most]
        min(open_ones, key=lambda one: logs[one].sum()).append(axis)
    return axes[:, np.concatenate(dealt)]


def _clustered(points: Floats, count: int) -> Floats:
    """Centres by Lloyd's rounds from points drawn at random; an empty cell keeps its centre."""
    centres = points[np.random.default_rng(1).permutation(len(points))[:count]].copy()
    for _ in range(_ROUNDS):
        cell = _distances(points, centres).argmin(axis=1)
        size = np.bincount(cell, minlength=count)
        filled = size > 0
        sums = np.zeros_like(centres)
        np.add.at(sums, cell, points)
        centres[filled] = sums[filled] / size[filled, None]
    return centres


def _distances(left: Floats, right: Floats) -> Floats:
    """Squared distances, (l, r)."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)
    return squares - 2 * left @ right.T


if __name__ == "__main__":
    print(json.dumps(recall(json.load(sys.stdin))))
