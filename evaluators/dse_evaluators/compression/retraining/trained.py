"""Result of a retraining method, and helpers that the methods share for training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dse.core.values import Floats
from dse_evaluators.compression.retraining import sgd
from dse_evaluators.compression.retraining.distillation import DistillationLoss
from dse_evaluators.compression.retraining.operation_counts import whole_weights
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.sgd import LearningRateSchedule, Steer, TrainingBatch
from dse_evaluators.compression.retraining.task_data import TaskData
from dse_evaluators.workloads.network import Affines, LayerWeights, forward


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Retrained network in its original shape, with zeros for removed weights.

    ``weights`` is the number of weights multiplied per epoch and layer, (epochs, layers).
    """

    affines: Affines
    weights: Floats

    @staticmethod
    def dense(affines: Affines, data: TaskData, epochs: int) -> Trained:
        """Return the result of a training that multiplied all weights, including zeros."""
        weights = np.tile(whole_weights(data.layers), (epochs, 1))
        return Trained(affines=affines, weights=weights)


Method = Callable[[TaskData, Knobs], Trained]


def schedule_of(data: TaskData, knobs: Knobs) -> LearningRateSchedule:
    """Return the schedule of a training's updates, with a learning rate that falls to zero."""
    updates = knobs.epochs * sgd.updates_per_epoch(len(data.labels))
    return LearningRateSchedule(updates=updates, start_rate=knobs.rate)


def distillation_of(knobs: Knobs) -> DistillationLoss:
    """Return the training loss, whose terms the settings weight."""
    return DistillationLoss(alpha=knobs.alpha, beta=knobs.beta, temperature=knobs.temperature)


def training_batches_of(data: TaskData, knobs: Knobs) -> Iterator[TrainingBatch]:
    """Return the training batches, with the original network as teacher if the loss needs one."""
    teacher = data.logits if distillation_of(knobs).has_teacher else None
    return sgd.training_batches(data.images, data.labels, data.seen, teacher, knobs.seed)


def leaves(affines: Affines) -> Affines:
    """Return a copy of weights and biases that can be trained: leaf tensors with gradients."""
    return tuple(
        LayerWeights(
            affine.weight.detach().clone().requires_grad_(),
            affine.bias.detach().clone().requires_grad_(),
        )
        for affine in affines
    )


def frozen(affines: Affines) -> Affines:
    """Return a detached copy of weights and biases, without gradients."""
    return tuple(
        LayerWeights(affine.weight.detach().clone(), affine.bias.detach().clone())
        for affine in affines
    )


def tensors_of(affines: Affines) -> list[Tensor]:
    """Return the weights and biases of all layers as one list of tensors."""
    return [tensor for affine in affines for tensor in (affine.weight, affine.bias)]


def train_leaves(
    data: TaskData,
    affines: Affines,
    knobs: Knobs,
    steer: Steer,
    schedule: LearningRateSchedule | None = None,
    batches: Iterator[TrainingBatch] | None = None,
) -> None:
    """Train given weights and biases in place, by the settings' loss, data and schedule."""
    sgd.descend(
        tensors_of(affines),
        lambda images: forward(data.network, affines, images),
        schedule or schedule_of(data, knobs),
        batches=batches or training_batches_of(data, knobs),
        distillation=distillation_of(knobs),
        steer=steer,
    )


def held_at_zero(affines: Affines, masks: list[Tensor]) -> Steer:
    """Return a callback that sets weights outside the masks to zero after each update."""

    def settle(_: int) -> None:
        for affine, mask in zip(affines, masks, strict=True):
            affine.weight.mul_(mask)

    return Steer(settle=settle)


def loss_nat(data: TaskData, affines: Affines) -> float:
    """Return a network's mean cross-entropy on the search images, in nats.

    It is used to compare steps of one training.
    """
    with torch.no_grad():
        logits = forward(data.network, affines, data.search.images)
        return float(torch.nn.functional.cross_entropy(logits, data.search.labels))
