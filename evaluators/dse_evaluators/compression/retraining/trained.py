"""Result of a retraining method: weights, and their number in each epoch of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dse.core.values import Floats
from dse_evaluators.compression.retraining import descent
from dse_evaluators.compression.retraining.cost import whole_weights
from dse_evaluators.compression.retraining.descent import LearningRateSchedule, Lesson, Steer
from dse_evaluators.compression.retraining.knobs import Knobs
from dse_evaluators.compression.retraining.material import Material
from dse_evaluators.compression.retraining.teaching import Teaching
from dse_evaluators.workloads.network import Affines, LayerWeights, forward


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A network of the whole one's shape, zero where something was cut.

    ``weights`` are those that were multiplied in each epoch, (epochs, layers).
    """

    affines: Affines
    weights: Floats

    @staticmethod
    def dense(affines: Affines, material: Material, epochs: int) -> Trained:
        """One that was trained with all its weights, though some were held at zero."""
        weights = np.tile(whole_weights(material.layers), (epochs, 1))
        return Trained(affines=affines, weights=weights)


Method = Callable[[Material, Knobs], Trained]


def course_of(material: Material, knobs: Knobs) -> LearningRateSchedule:
    """All updates of the knobs' epochs, down to no rate."""
    updates = knobs.epochs * descent.updates_per_epoch(len(material.labels))
    return LearningRateSchedule(updates=updates, start_rate=knobs.rate)


def teaching_of(knobs: Knobs) -> Teaching:
    """The loss that the knobs ask for."""
    return Teaching(alpha=knobs.alpha, beta=knobs.beta, temperature=knobs.temperature)


def lessons_of(material: Material, knobs: Knobs) -> Iterator[Lesson]:
    """The training images, with the whole network as teacher where the loss has one."""
    teacher = material.says if teaching_of(knobs).has_teacher else None
    return descent.lessons(material.images, material.labels, material.seen, teacher, knobs.seed)


def leaves(affines: Affines) -> Affines:
    """A copy to be trained."""
    return tuple(
        LayerWeights(
            affine.weight.detach().clone().requires_grad_(),
            affine.bias.detach().clone().requires_grad_(),
        )
        for affine in affines
    )


def frozen(affines: Affines) -> Affines:
    """A copy that is done."""
    return tuple(
        LayerWeights(affine.weight.detach().clone(), affine.bias.detach().clone())
        for affine in affines
    )


def tensors_of(affines: Affines) -> list[Tensor]:
    """Weights and biases in a row."""
    return [tensor for affine in affines for tensor in (affine.weight, affine.bias)]


def train_leaves(
    material: Material,
    affines: Affines,
    knobs: Knobs,
    steer: Steer,
    course: LearningRateSchedule | None = None,
    taught: Iterator[Lesson] | None = None,
) -> None:
    """Train these leaves in place."""
    descent.descend(
        tensors_of(affines),
        lambda images: forward(material.network, affines, images),
        course or course_of(material, knobs),
        taught=taught or lessons_of(material, knobs),
        teaching=teaching_of(knobs),
        steer=steer,
    )


def held_at_zero(affines: Affines, masks: list[Tensor]) -> Steer:
    """Weights outside the masks go back to zero after each update."""

    def settle(_: int) -> None:
        for affine, mask in zip(affines, masks, strict=True):
            affine.weight.mul_(mask)

    return Steer(settle=settle)


def loss_nat(material: Material, affines: Affines) -> float:
    """Cross-entropy on the search images, by which steps of one training are compared."""
    with torch.no_grad():
        logits = forward(material.network, affines, material.search.images)
        return float(torch.nn.functional.cross_entropy(logits, material.search.labels))
