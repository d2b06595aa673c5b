"""Pruning by alternating training and projection with an augmented Lagrangian (L-C, ADMM)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dse_evaluators.compression.retraining.magnitude import project_weights
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.sgd import LearningRateSchedule, Steer
from dse_evaluators.compression.retraining.task_data import TaskData
from dse_evaluators.compression.retraining.trained import (
    Trained,
    frozen,
    held_at_zero,
    leaves,
    loss_nat,
    schedule_of,
    train_leaves,
    training_batches_of,
)
from dse_evaluators.workloads.network import Affines, LayerWeights

MU_CAP = 1e4
_LAST_RATE = 0.1  # of the last step, as a fraction of the first step's
_FINISH_SHARE = 0.25  # of the updates, for the final training of the kept weights


def mu_schedule(start: float, multiplier: float, steps: int) -> list[float]:
    """Return the penalty parameter mu of the augmented Lagrangian in each step, (steps,).

    Source:
        Joseph et al., A Programmable Approach to Neural Network Compression, 2020 (Condensa), and
        its code: mu is multiplied by a constant after each step, up to 10,000.
    """
    return [min(start * multiplier**step, MU_CAP) for step in range(steps)]


def l_c(data: TaskData, knobs: Knobs) -> Trained:
    """Alternate training steps, pulled towards pruned weights, with pruning; then fine-tune.

    The number of updates is that of the other methods for the same number of epochs. The first
    pruned weights result from magnitude pruning; of the pruned weights of all steps, those with the
    least loss on the search images are trained at the end, with pruned weights held at zero.

    Source:
        Carreira-Perpinan, Idelbayev, "Learning-Compression" Algorithms for Neural Net Pruning,
        2018; Joseph et al., 2020, and its code.
    """
    affines = leaves(data.whole)
    schedule = schedule_of(data, knobs)
    finish = max(1, round(_FINISH_SHARE * schedule.updates))
    batches = training_batches_of(data, knobs)
    pair = Pair([affine.weight for affine in affines], knobs.density)
    best, least = _cut(affines, pair.cut), loss_nat(data, _cut(affines, pair.cut))
    learning = _pieces(schedule.updates - finish, knobs.steps, knobs.rate)
    for mu, piece in zip(
        mu_schedule(knobs.mu_start, knobs.mu_multiplier, knobs.steps), learning, strict=True
    ):
        train_leaves(data, affines, knobs, pair.pulled(mu), piece, batches)
        pair.compress(mu)
        loss = loss_nat(data, _cut(affines, pair.cut))
        if loss < least:
            best, least = _cut(affines, pair.cut), loss
    final = leaves(best)
    masks = [(affine.weight != 0).float() for affine in final]
    ending = LearningRateSchedule(updates=finish, start_rate=knobs.rate)
    train_leaves(data, final, knobs, held_at_zero(final, masks), ending, batches)
    return Trained.dense(frozen(final), data, knobs.epochs)


class Pair:
    """Weights w, the pruned copy theta, and the Lagrange multipliers lambda."""

    def __init__(self, weights: Sequence[Tensor], density: float) -> None:
        self.cut = project_weights(list(weights), density)
        self.multipliers = [torch.zeros_like(weight) for weight in weights]
        self._weights = list(weights)
        self._density = density

    def pulled(self, mu: float) -> Steer:
        """Return the callback of a training step: add mu (w - theta) - lambda to the gradient."""

        def pull(_: int) -> None:
            for weight, cut, multiplier in self._rows():
                assert weight.grad is not None
                weight.grad += mu * (weight.detach() - cut) - multiplier

        return Steer(pull=pull)

    def compress(self, mu: float) -> None:
        """Set theta = cut(w - lambda / mu), the pruned copy, then lambda -= mu (w - theta)."""
        moved = [weight.detach() - multiplier / mu for weight, _, multiplier in self._rows()]
        self.cut = project_weights(moved, self._density)
        self.multipliers = [
            multiplier - mu * (weight.detach() - cut) for weight, cut, multiplier in self._rows()
        ]

    def _rows(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        return list(zip(self._weights, self.cut, self.multipliers, strict=True))


def _cut(affines: Affines, weights: Sequence[Tensor]) -> Affines:
    return frozen(
        tuple(
            LayerWeights(weight, affine.bias)
            for weight, affine in zip(weights, affines, strict=True)
        )
    )


def _pieces(updates: int, steps: int, rate: float) -> list[LearningRateSchedule]:
    """Split all updates equally over the steps, with a learning rate that drops at each step."""
    ends = [updates * step // steps for step in range(steps + 1)]
    rates = [rate * _LAST_RATE ** (step / max(1, steps - 1)) for step in range(steps)]
    return [
        LearningRateSchedule(updates=end - begin, start_rate=one, end_rate=one)
        for begin, end, one in zip(ends[:-1], ends[1:], rates, strict=True)
    ]
