"""Training of one recommender on MovieLens, with its results cached on disk."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from dse_evaluators.compression.embeddings.recommender import Recommender, Widths, init_recommender
from dse_evaluators.workloads.judging import auc
from dse_evaluators.workloads.movielens import MovieLens, Ratings, movielens
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make

_FIGURES = 5
_VERSION = 1  # of the results; part of the cache key
_MOVIE = "movie"

OPTIMIZERS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}


@dataclass(frozen=True, slots=True, kw_only=True)
class MletTraining:
    """Settings of one training of a recommender, which identify its cached result."""

    embedding: int
    inner: int  # inner dimension; 0: one table for each field
    optimizer: str
    rate: float
    seed: int
    epochs: int
    batch: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Scores of the recommender at the epoch with the best AUC on the search split."""

    auc: float  # on the search split
    loss: float  # on the search split, nats
    test_auc: float
    rare_auc: float  # on the test ratings of the third with the least-rated movies
    cpu_s: float  # of the entire training


def widths_of(embedding: int, inner: int) -> Widths:
    """Return the dimensions of a recommender for the MovieLens ratings."""
    known = _load_ratings()
    return Widths(
        categories=tuple(known.rows.values()),
        dense=known.train.features.shape[1],
        embedding=embedding,
        inner=inner,
    )


def reading_of(training: MletTraining) -> Reading:
    """Train a recommender, or load its results from the disk cache if it was trained before.

    If no epoch has finite results, ``auc`` is 0.
    """
    key = hashlib.sha256(f"{_VERSION} {training} {torch.__version__}".encode()).hexdigest()[:16]
    shapes = {"reading": (_FIGURES,)}
    figures = load_or_make(f"mlet-{key}", shapes, lambda: _run_training(training))["reading"]
    values = [float(value) for value in figures]
    return Reading(
        auc=values[0], loss=values[1], test_auc=values[2], rare_auc=values[3], cpu_s=values[4]
    )


def _run_training(training: MletTraining) -> Arrays:
    known = _load_ratings()
    chance = torch.Generator().manual_seed(training.seed)
    begin = time.process_time()
    best = np.zeros(_FIGURES, dtype=np.float32)
    with deterministic():
        model = init_recommender(widths_of(training.embedding, training.inner), chance)
        optimizer = OPTIMIZERS[training.optimizer](model.tensors, lr=training.rate)
        for _ in range(training.epochs):
            _epoch(model, optimizer, training, chance)
            now = np.array(_score_splits(model.collapse_tables(), known), dtype=np.float32)
            if np.isfinite(now).all():
                best = max(best, now, key=lambda figures: float(figures[0]))
    best[-1] = time.process_time() - begin
    return {"reading": best}


def _epoch(
    model: Recommender,
    optimizer: torch.optim.Optimizer,
    training: MletTraining,
    chance: torch.Generator,
) -> None:
    """Train for one epoch in random order, without the last incomplete batch."""
    categories, features, liked = _tensors(_load_ratings().train)
    order = torch.randperm(len(liked), generator=chance)
    steps = len(order) // training.batch
    for rows in order[: steps * training.batch].reshape(steps, training.batch):
        logits = model.logits(categories[rows], features[rows])
        loss = functional.binary_cross_entropy_with_logits(logits, liked[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@torch.inference_mode()
def _score_splits(model: Recommender, known: MovieLens) -> tuple[float, ...]:
    """Return (AUC, loss) on the search split, AUC on the test split and its rare movies, and 0.

    The last element is a placeholder for the training time.
    """
    search, test = _scores(model, known.search), _scores(model, known.test)
    few = rare(known)
    loss = functional.binary_cross_entropy_with_logits(search, _tensors(known.search)[2])
    return (
        auc(search.numpy(), known.search.liked),
        float(loss),
        auc(test.numpy(), known.test.liked),
        auc(test.numpy()[few], known.test.liked[few]),
        0.0,
    )


def rare(known: MovieLens) -> NDArray[np.bool_]:
    """Return the mask of the third of the test ratings with the least-rated movies, (n,).

    Movies are ranked by their number of training ratings.
    """
    column = list(known.rows).index(_MOVIE)
    counts = np.bincount(known.train.ids[:, column], minlength=known.rows[_MOVIE])
    each = counts[known.test.ids[:, column]]
    few: NDArray[np.bool_] = each <= np.quantile(each, 1 / 3)
    return few


def _scores(model: Recommender, ratings: Ratings) -> Tensor:
    categories, features, _ = _tensors(ratings)
    return model.logits(categories, features)


def _tensors(ratings: Ratings) -> tuple[Tensor, Tensor, Tensor]:
    """Return a split's ids, features and labels as PyTorch tensors."""
    return (
        torch.from_numpy(ratings.ids),
        torch.from_numpy(ratings.features),
        torch.from_numpy(ratings.liked.astype(np.float32)),
    )


@cache
def _load_ratings() -> MovieLens:
    """Return the ratings of MovieLens, read once in each process."""
    return movielens()
