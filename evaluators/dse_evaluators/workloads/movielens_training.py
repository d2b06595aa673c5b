"""Training of the recommender on MovieLens-100k, with a cache of the weights."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.dlrm_network import scores
from dse_evaluators.workloads.layers import MOVIELENS_MLP
from dse_evaluators.workloads.movielens import MovieLens, Ratings
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make

VECTOR = MOVIELENS_MLP[1].filters
"""Length of the embeddings and of the bottom MLP's output."""


@dataclass(frozen=True, slots=True)
class RecommenderTraining:
    """Settings of the training of the recommender, which identify its cached weights.

    The embeddings overfit within two epochs without a strong weight decay. Of 15 settings of
    epochs, learning rate, decay and dropout, this one had the best area under the ROC curve on the
    search split.
    """

    epochs: int = 8
    batch: int = 512
    peak_rate: float = 3e-3
    table_decay: float = 10.0
    weight_decay: float = 1e-2
    table_start: float = 0.05  # standard deviation
    seed: int = 0


TRAINING = RecommenderTraining()


def load_or_train(data: MovieLens, training: RecommenderTraining = TRAINING) -> Arrays:
    """Return the recommender's weights, from the cache or by training."""
    shapes = {name: tuple(weight.shape) for name, weight in _start(data.rows, training)[0].items()}
    return load_or_make(_name(data, training), shapes, lambda: train(data, training))


def train(data: MovieLens, training: RecommenderTraining = TRAINING) -> Arrays:
    """Train weights from scratch; the same ratings give bit-identical weights.

    Source:
        Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019 (AdamW); Smith, Topin,
        Super-Convergence, 2018 (one cycle of the rate).
    """
    with deterministic():
        weights, chance = _start(data.rows, training)
        ids, features, liked = _tensors(data.train)
        steps = len(liked) // training.batch
        optimizer = torch.optim.AdamW(_groups(weights, training), lr=training.peak_rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, training.peak_rate, total_steps=training.epochs * steps
        )
        for _ in range(training.epochs):
            order = torch.randperm(len(liked), generator=chance)
            for rows in order[: steps * training.batch].reshape(steps, training.batch):
                predicted = scores(weights, ids[rows], features[rows])
                optimizer.zero_grad()
                functional.binary_cross_entropy_with_logits(predicted, liked[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    return {name: weight.detach().numpy() for name, weight in weights.items()}


def _start(
    rows: Mapping[str, int], training: RecommenderTraining
) -> tuple[dict[str, Tensor], torch.Generator]:
    """Draw random weights; return them with the random generator, for further draws.

    Source:
        He et al., Delving Deep into Rectifiers, 2015, eq. 10 (the dense layers).
    """
    chance = torch.Generator().manual_seed(training.seed)
    weights: dict[str, Tensor] = {}
    for name, count in rows.items():
        table = torch.randn((count, VECTOR), generator=chance)
        weights[f"embed_{name}.weight"] = table * training.table_start
    for layer in MOVIELENS_MLP:
        weight = torch.randn((layer.filters, layer.channels), generator=chance)
        weights[f"{layer.name}.weight"] = weight * math.sqrt(2 / layer.channels)
        weights[f"{layer.name}.bias"] = torch.zeros(layer.filters)
    for weight in weights.values():
        weight.requires_grad_()
    return weights, chance


def _groups(
    weights: Mapping[str, Tensor], training: RecommenderTraining
) -> list[dict[str, object]]:
    tables = [weight for name, weight in weights.items() if name.startswith("embed_")]
    dense = [weight for name, weight in weights.items() if not name.startswith("embed_")]
    return [
        {"params": tables, "weight_decay": training.table_decay},
        {"params": dense, "weight_decay": training.weight_decay},
    ]


def _tensors(ratings: Ratings) -> tuple[Tensor, Tensor, Tensor]:
    liked = torch.tensor(ratings.liked, dtype=torch.float32)
    return torch.tensor(ratings.ids), torch.tensor(ratings.features), liked


def _name(data: MovieLens, training: RecommenderTraining) -> str:
    """Return the cache key: a hash of layers, training settings, ratings and torch version."""
    words = f"{MOVIELENS_MLP} {data.rows} {training} {torch.__version__}"
    recipe = hashlib.sha256(words.encode())
    for array in (data.train.ids, data.train.features, data.train.liked):
        recipe.update(array.tobytes())
    return f"movielens-dlrm-{recipe.hexdigest()[:16]}"
