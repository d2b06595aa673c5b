"""Low-rank weights: factored after training, trained as factors, or reduced during training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dse.core.values import Floats
from dse_evaluators.compression.operators import svd, tucker
from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.record import Record, Store
from dse_evaluators.compression.retraining import sgd
from dse_evaluators.compression.retraining.operation_counts import whole_weights
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.sgd import Steer
from dse_evaluators.compression.retraining.task_data import TaskData
from dse_evaluators.compression.retraining.trained import (
    Trained,
    distillation_of,
    frozen,
    leaves,
    schedule_of,
    train_leaves,
    training_batches_of,
)
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.network import Affines, LayerWeights, forward

Shape = Sequence[int]


def factor_weights(weight: Single, density: float, factoring: str, store: Store = FP32) -> Record:
    """Encode weights as low-rank factors with at most ``density`` times as many elements."""
    ranks = ranks_of(weight.shape, density, factoring)
    if len(ranks) == 1:
        return svd.plain(weight, ranks[0], store)
    outputs, inputs = ranks
    return tucker.tucker_2(weight, outputs, inputs, store)


def is_cut(place: int, layers: int) -> bool:
    """Return whether a layer's rank is reduced; the first and the last layer keep their rank."""
    return 0 < place < layers - 1


def low_rank(data: TaskData, knobs: Knobs) -> Trained:
    """Reduce the ranks of the trained network's layers once, without retraining."""
    return Trained.dense(frozen(_cut(data.whole, knobs)), data, 0)


def train_with_distortion(data: TaskData, knobs: Knobs) -> Trained:
    """Train all weights, and reduce the ranks every ``period`` updates and at the end.

    Source:
        Lee et al., DeepTwist: Learning Model Compression via Occasional Weight Distortion, 2018;
        on low rank: Lee et al., Learning Low-Rank Approximation for CNNs, 2019.
    """
    affines = leaves(data.whole)

    def settle(update: int) -> None:
        if (update + 1) % knobs.period == 0:
            for affine, low in zip(affines, _cut(affines, knobs), strict=True):
                affine.weight.copy_(low.weight)

    train_leaves(data, affines, knobs, Steer(settle=settle))
    return Trained.dense(frozen(_cut(frozen(affines), knobs)), data, knobs.epochs)


def factors(data: TaskData, knobs: Knobs) -> Trained:
    """Factor the layers of the trained network, then train the factors.

    Source:
        Denton et al., Exploiting Linear Structure Within Convolutional Networks, 2014;
        Kim et al., Compression of Deep Convolutional Neural Networks for Fast and Low Power
        Mobile Applications, 2016 (Tucker-2); both retrain after factoring.
    """
    parts = [
        _leaves(affine.weight, knobs) if is_cut(place, len(data.whole)) else None
        for place, affine in enumerate(data.whole)
    ]
    own = leaves(data.whole)

    def whole() -> Affines:
        return tuple(
            affine
            if part is None
            else LayerWeights(product(part, affine.weight.shape), affine.bias)
            for part, affine in zip(parts, own, strict=True)
        )

    tensors = [affine.bias for affine in own]
    for part, affine in zip(parts, own, strict=True):
        tensors += [affine.weight] if part is None else part
    sgd.descend(
        tensors,
        lambda images: forward(data.network, whole(), images),
        schedule_of(data, knobs),
        batches=training_batches_of(data, knobs),
        distillation=distillation_of(knobs),
    )
    return Trained(affines=frozen(whole()), weights=_count_weights(data, knobs))


def product(parts: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    """Return the weights that low-rank factors (or a Tucker-2 core and factors) represent."""
    if len(parts) == 2:
        return (parts[0] @ parts[1]).reshape(*shape)
    core, out, into = parts
    return torch.einsum("abhw,oa,ib->oihw", core, out, into)


def _cut(affines: Affines, knobs: Knobs) -> Affines:
    low = []
    for place, affine in enumerate(affines):
        weight = affine.weight.detach()
        if is_cut(place, len(affines)):
            record = factor_weights(weight.numpy(), knobs.density, knobs.factoring)
            weight = torch.tensor(restore_tensor(record))
        low.append(LayerWeights(weight, affine.bias.detach()))
    return tuple(low)


def _leaves(weight: Tensor, knobs: Knobs) -> list[Tensor]:
    record = factor_weights(weight.detach().numpy(), knobs.density, knobs.factoring)
    return [torch.tensor(restore_tensor(part)).requires_grad_() for part in record.parts]


def _count_weights(data: TaskData, knobs: Knobs) -> Floats:
    """Return the number of weights multiplied per epoch and layer, (epochs, layers)."""
    weights = whole_weights(data.layers)
    for place, affine in enumerate(data.whole):
        if is_cut(place, len(data.whole)):
            weights[place] = factored_weights(affine.weight.shape, knobs.density, knobs.factoring)
    return np.tile(weights, (knobs.epochs, 1))


def ranks_of(shape: Shape, density: float, factoring: str) -> tuple[int, ...]:
    """Return the ranks of a layer's factors: one for two factors, two for Tucker-2.

    Args:
        shape: shape of the weights, (outputs, inputs, ...).
        density: numbers in the factors over those in the weights; ranks are rounded down.
        factoring: ``svd`` or ``tucker-2``; layers that are not convolutions always get an SVD.
    """
    outputs, inputs = shape[0], math.prod(shape[1:])
    if factoring == "svd" or len(shape) < 4:
        return (max(1, math.floor(density * outputs * inputs / (outputs + inputs))),)
    # r1 = s outputs and r2 = s channels: a s^2 + b s = density * a.
    channels = shape[1]
    whole, sides = outputs * inputs, outputs**2 + channels**2
    share = (math.sqrt(sides**2 + 4 * whole * density * whole) - sides) / (2 * whole)
    return max(1, math.floor(share * outputs)), max(1, math.floor(share * channels))


def factored_weights(shape: Shape, density: float, factoring: str) -> int:
    """Return the number of weights in a layer's low-rank factors."""
    outputs, inputs = shape[0], math.prod(shape[1:])
    ranks = ranks_of(shape, density, factoring)
    if len(ranks) == 1:
        return ranks[0] * (outputs + inputs)
    first, second = ranks
    return first * second * math.prod(shape[2:]) + outputs * first + shape[1] * second
