"""Pruning of the diagonals of packed layers by a group lasso, and training of what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log

import torch
from torch import Tensor

from dse_evaluators.compression.retraining.group_lasso import penalty_weight
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.sgd import MOMENTUM, LearningRateSchedule, Steer
from dse_evaluators.compression.retraining.task_data import TaskData
from dse_evaluators.compression.retraining.trained import (
    Trained,
    frozen,
    held_at_zero,
    leaves,
    schedule_of,
    train_leaves,
    training_batches_of,
)
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import Affines
from dse_evaluators.workloads.packed_diagonals import (
    count_held_channels,
    count_rotations,
    label_diagonals,
)

_LASSO_SHARE = 0.5  # of the updates; after it the weakest diagonals are removed


@dataclass(frozen=True, slots=True)
class Diagonals:
    """Diagonals of a layer's weights as packed into ciphertexts for homomorphic encryption.

    ``labels`` are those of :func:`.label_diagonals`, (filters, channels); ``rotations`` counts the
    diagonals that need a rotation, including those without weights.
    """

    labels: Tensor
    held: int
    rotations: int

    @staticmethod
    def of(layer: Layer, slots: int) -> Diagonals:
        """Return the diagonals of a layer in ciphertexts of ``slots`` slots."""
        pixels = layer.output_height * layer.output_width
        held = count_held_channels(
            pixels=pixels, channels=layer.channels, filters=layer.filters, slots=slots
        )
        labels = torch.from_numpy(label_diagonals(layer.channels, layer.filters, held))
        return Diagonals(labels, held, count_rotations(layer.filters, held))

    def measure_norms(self, weight: Tensor) -> Tensor:
        """Return the Euclidean norm of the weights of each diagonal, (d,); those of 0 are kept."""
        squares = weight.detach().square().reshape(*self.labels.shape, -1).sum(2)
        count = int(self.labels.max()) + 1
        return torch.zeros(count).index_add_(0, self.labels.flatten(), squares.flatten()).sqrt()

    def scale(self, weight: Tensor, factors: Tensor) -> Tensor:
        """Return the weights, each multiplied by the factor of its diagonal, (d,).

        Weights on diagonals that need no rotation (distance 0) are unchanged.
        """
        factors = factors.clone()
        factors[:: self.held] = 1.0
        spread = factors[self.labels]
        return weight * spread.reshape(*spread.shape, *(1,) * (weight.ndim - 2))

    def select(self, weight: Tensor, kept: float) -> Tensor:
        """Return 1 for the strongest diagonals, a share ``kept`` of the rotations, else 0, (d,)."""
        norms = self.measure_norms(weight)
        norms[:: self.held] = 0.0
        chosen = torch.zeros_like(norms)
        count = min(ceil(self.rotations * kept), len(norms))
        chosen[norms.argsort(descending=True, stable=True)[:count]] = 1.0
        return chosen


def diagonal_lasso(data: TaskData, knobs: Knobs) -> Trained:
    """Train with a group lasso on diagonals, remove the weakest of each layer, train the others.

    The penalty's coefficient is such that the penalty is the share ``penalty`` of its sum with the
    loss of a network that guesses; the loss of the trained network would be too small. A proximal
    step reduces the norm of each diagonal after each update. The first and the last layer are not
    pruned, because they are small and most sensitive.

    Source:
        Jeon et al., Artemis: HE-Aware Training for Efficient Privacy-Preserving Machine Learning,
        2023: group lasso on the structures that need rotations. Removing a stated share is added.
    """
    affines = leaves(data.whole)
    layers = list(enumerate(data.layers))[1:-1]
    diagonals = {place: Diagonals.of(layer, knobs.slots) for place, layer in layers}
    schedule, batches = schedule_of(data, knobs), training_batches_of(data, knobs)
    first = round(_LASSO_SHARE * schedule.updates)
    pieces = [
        LearningRateSchedule(
            updates=end - begin, start_rate=schedule.rate(begin), end_rate=schedule.rate(end)
        )
        for begin, end in ((0, first), (first, schedule.updates))
    ]
    guessed = log(data.layers[-1].filters)
    strength = penalty_weight(knobs.penalty, guessed, _sum_norms(affines, diagonals))
    if first:
        steer = _shrink(affines, diagonals, strength, pieces[0])
        train_leaves(data, affines, knobs, steer, pieces[0], batches)
    masks = [torch.ones_like(affine.weight) for affine in affines]
    for place, one in diagonals.items():
        kept = one.select(affines[place].weight, knobs.diagonals_kept)
        masks[place] = one.scale(masks[place].detach(), kept)
    held = held_at_zero(affines, masks)
    with torch.no_grad():
        held.settle(0)
    train_leaves(data, affines, knobs, held, pieces[1], batches)
    return Trained.dense(frozen(affines), data, knobs.epochs)


def _sum_norms(affines: Affines, diagonals: Mapping[int, Diagonals]) -> float:
    norms = [one.measure_norms(affines[place].weight) for place, one in diagonals.items()]
    return float(torch.cat(norms).sum())


def _shrink(
    affines: Affines,
    diagonals: Mapping[int, Diagonals],
    strength: float,
    piece: LearningRateSchedule,
) -> Steer:
    """Return a callback that reduces the norm of each diagonal after each update.

    Source:
        Parikh, Boyd, Proximal Algorithms, 2014, section 6.5.1.
    """

    def settle(update: int) -> None:
        by = piece.rate(update) / (1 - MOMENTUM) * strength
        for place, one in diagonals.items():
            weight = affines[place].weight
            norms = one.measure_norms(weight).clamp_min(torch.finfo(torch.float32).tiny)
            weight.copy_(one.scale(weight, (1 - by / norms).clamp_min(0)))

    return Steer(settle=settle)
