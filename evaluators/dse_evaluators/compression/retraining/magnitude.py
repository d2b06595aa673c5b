"""Magnitude pruning: in one step or gradually, with or without retraining."""

from __future__ import annotations

import torch
from torch import Tensor

from dse_evaluators.compression.operators import prune
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.sgd import Steer, updates_per_epoch
from dse_evaluators.compression.retraining.task_data import TaskData
from dse_evaluators.compression.retraining.trained import (
    Trained,
    frozen,
    held_at_zero,
    leaves,
    schedule_of,
    train_leaves,
)
from dse_evaluators.workloads.network import Affines, LayerWeights

_CUTTING_SHARE = 0.6  # of the training; the rest trains the kept weights


def project_weights(weights: list[Tensor], density: float) -> list[Tensor]:
    """Set all but the largest fraction ``density`` of the weights of all layers to zero."""
    layers = {str(place): weight.detach().numpy() for place, weight in enumerate(weights)}
    return [torch.tensor(thin) for thin in prune.globally(layers, density).values()]


def cut(affines: Affines, density: float) -> Affines:
    """Return a network with only its largest weights, over all layers; biases are unchanged."""
    thin = project_weights([affine.weight for affine in affines], density)
    return tuple(
        LayerWeights(weight, affine.bias) for weight, affine in zip(thin, affines, strict=True)
    )


def magnitude(data: TaskData, knobs: Knobs) -> Trained:
    """Set the smallest weights of the trained network to zero once, without retraining."""
    return Trained.dense(frozen(cut(data.whole, knobs.density)), data, 0)


def train_with_mask(data: TaskData, knobs: Knobs) -> Trained:
    """Prune the smallest weights once, then train with the pruned weights held at zero.

    Source:
        Han et al., Learning both Weights and Connections for Efficient Neural Networks, 2015.
    """
    affines = leaves(cut(data.whole, knobs.density))
    masks = [(affine.weight != 0).float() for affine in affines]
    train_leaves(data, affines, knobs, held_at_zero(affines, masks))
    return Trained.dense(frozen(affines), data, knobs.epochs)


def gradual(data: TaskData, knobs: Knobs) -> Trained:
    """Prune gradually by a cubic schedule over the first epochs, then train the kept weights."""
    affines = leaves(data.whole)
    epoch = updates_per_epoch(len(data.labels))
    cutting = _CUTTING_SHARE * schedule_of(data, knobs).updates
    masks = [torch.ones_like(affine.weight) for affine in affines]

    def settle(update: int) -> None:
        if update % epoch == 0:
            share = cubic_density(knobs.density, min(1.0, (update + epoch) / cutting))
            thin = project_weights([affine.weight for affine in affines], share)
            masks[:] = [(weight != 0).float() for weight in thin]
        for affine, mask in zip(affines, masks, strict=True):
            affine.weight.mul_(mask)

    train_leaves(data, affines, knobs, Steer(settle=settle))
    return Trained.dense(frozen(affines), data, knobs.epochs)


def cubic_density(density: float, progress: float) -> float:
    """Return the fraction of weights kept at a fraction ``progress`` of a pruning schedule.

    The fraction falls from 1 to ``density`` as a cubic polynomial.

    Source:
        Zhu, Gupta, To Prune, or Not to Prune, 2017, eq. 1.
    """
    return density + (1 - density) * (1 - progress) ** 3
