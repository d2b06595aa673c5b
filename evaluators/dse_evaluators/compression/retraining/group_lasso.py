"""Channel pruning during training by a group lasso (PruneTrain)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.compression.retraining import sgd
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.sgd import MOMENTUM, LearningRateSchedule, Steer
from dse_evaluators.compression.retraining.task_data import TaskData, start
from dse_evaluators.compression.retraining.trained import (
    Trained,
    frozen,
    leaves,
    schedule_of,
    train_leaves,
    training_batches_of,
)
from dse_evaluators.workloads.network import Affines, LayerWeights, forward

_LASSO_SHARE = 0.8  # of the training; after it no weight is shrunk and no channel removed

_NEVER_ZERO = 1e-8


def group_lasso(data: TaskData, knobs: Knobs) -> Trained:
    """Train from random weights with a group lasso, and remove channels every few epochs.

    The penalty's coefficient is fixed at the start. Weights are reduced by the lasso's proximal
    step, which can make them exactly zero, instead of by its gradient, which cannot.

    Source:
        Lym et al., PruneTrain: Fast Neural Network Training by Dynamic Sparse Model
        Reconfiguration, 2019, and its code; Parikh, Boyd, Proximal Algorithms, 2014, section
        6.5.1.
    """
    affines = leaves(start(data.layers, knobs.seed))
    kept = ChannelMasks.everything(affines)
    strength = penalty_weight(knobs.penalty, _first_loss(data, affines), groups_sum(affines))
    whole = schedule_of(data, knobs)
    batches = training_batches_of(data, knobs)
    epoch = sgd.updates_per_epoch(len(data.labels))
    counts = []
    for number, size in enumerate(_spans(knobs.epochs, knobs.interval)):
        begin = number * knobs.interval
        lasso = begin + size <= _LASSO_SHARE * knobs.epochs
        piece = LearningRateSchedule(
            updates=size * epoch,
            start_rate=whole.rate(begin * epoch),
            end_rate=whole.rate((begin + size) * epoch),
        )
        steer = shrinking(affines, strength, piece) if lasso else sgd.FREE
        counts += [[affine.weight.numel() for affine in affines]] * size
        train_leaves(data, affines, knobs, steer, piece, batches)
        if lasso:
            affines, kept = narrower(frozen(affines), kept, knobs.threshold)
            affines = leaves(affines)
    return Trained(
        affines=widen_network(frozen(affines), kept), weights=np.array(counts, dtype=np.float64)
    )


def penalty_weight(share: float, loss: float, groups: float) -> float:
    """Return the coefficient with which a group lasso is ``share`` of the initial loss.

    Source:
        Lym et al., 2019, the code: ratio CE / (P (1 - ratio)), both at the first update.
    """
    return share * loss / (groups * (1 - share))


def groups_sum(affines: Affines) -> float:
    """Return the group-lasso penalty: the sum of the norms of all filters and input channels.

    The first layer's inputs and the last layer's outputs cannot be removed, and are excluded.
    """
    total = 0.0
    for place, affine in enumerate(affines):
        weight = affine.weight.detach()
        if place < len(affines) - 1:
            total += float(lengths(weight).sum())
        if place:
            total += float(lengths(by_input(weight, _filters(affines, place))).sum())
    return total


def lengths(
    groups: Tensor,  # (groups, ...)
) -> Tensor:
    """Return the Euclidean norm of each group of weights (a filter or input channel), (groups,)."""
    return (groups.flatten(1).square().sum(dim=1) + _NEVER_ZERO**2).sqrt()


def by_input(
    weight: Tensor,  # (outputs, inputs, ...)
    channels: int,
) -> Tensor:
    """Return the weights with one row for each input channel, (channels, ...).

    A layer that follows flattening has several inputs per channel, which form one row.
    """
    each = weight.shape[1] // channels
    return weight.transpose(0, 1).reshape(channels, each * weight[:, 0].numel())


def shrunk(
    groups: Tensor,  # (groups, ...)
    by: float,
) -> Tensor:
    """Return each group with its norm reduced by ``by``, or zero if its norm is at most ``by``.

    Source:
        Parikh, Boyd, 2014, section 6.5.1, the proximal operator of the Euclidean norm.
    """
    norms = groups.flatten(1).norm(dim=1)
    factors = (1 - by / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_min(0)
    return groups * factors.reshape(-1, *(1,) * (groups.ndim - 1))


def shrinking(affines: Affines, strength: float, piece: LearningRateSchedule) -> Steer:
    """Return a callback that applies the lasso's proximal step after each training update.

    The step shrinks filters first, then input channels. With momentum, a constant gradient moves a
    weight by rate / (1 - momentum) per update in the long run; the proximal step has the same
    length.
    """

    def settle(update: int) -> None:
        by = piece.rate(update) / (1 - MOMENTUM) * strength
        for place, affine in enumerate(affines):
            weight = affine.weight
            if place < len(affines) - 1:
                weight.copy_(shrunk(weight, by))
            if place:
                rows = by_input(weight, _filters(affines, place))
                back = shrunk(rows, by).reshape(weight.transpose(0, 1).shape)
                weight.copy_(back.transpose(0, 1))

    return Steer(settle=settle) if strength else sgd.FREE


def _filters(affines: Affines, place: int) -> int:
    """Return the number of input channels of the layer at ``place``."""
    return len(affines[place - 1].weight)


def _first_loss(data: TaskData, affines: Affines) -> float:
    with torch.no_grad():
        logits = forward(data.network, affines, data.images)
        return float(functional.cross_entropy(logits, data.labels))


def _spans(epochs: int, interval: int) -> list[int]:
    """Return the number of epochs between successive channel removals, as a list.

    They are ``interval`` each, except for the last, which may be smaller.
    """
    whole, rest = divmod(epochs, interval)
    return [interval] * whole + [rest] * (rest > 0)


@dataclass(frozen=True, slots=True)
class ChannelMasks:
    """Masks of the output channels that remain in each layer of a pruned network.

    ``inputs`` is the number of inputs of the first layer.
    """

    outputs: tuple[Tensor, ...]  # each (outputs,), true for outputs that remain
    inputs: int

    @staticmethod
    def everything(affines: Affines) -> ChannelMasks:
        """Return the masks of a network from which no channel was removed."""
        every = tuple(torch.ones(len(affine.weight), dtype=torch.bool) for affine in affines)
        return ChannelMasks(every, affines[0].weight.shape[1])


def narrower(
    affines: Affines, kept: ChannelMasks, threshold: float
) -> tuple[Affines, ChannelMasks]:
    """Remove channels of small weights from a network; return it with the remaining masks.

    A channel is removed if all weights of its filter, or all weights that read it, are below
    ``threshold`` in magnitude; a layer keeps at least its strongest channel. A filter of zeros
    still outputs its rectified bias; that constant is added to the biases of the next layer, which
    is exact except at an image's border.

    Source:
        Lym et al., PruneTrain, 2019, and its code.
    """
    stays = [_stays(affines, place, threshold) for place in range(len(affines))]
    narrow = []
    for place, affine in enumerate(affines):
        weight, bias = affine.weight, affine.bias
        if place:
            before = affines[place - 1]
            rows = stays[place - 1]
            each = weight.shape[1] // len(rows)
            inputs = rows.repeat_interleave(each)
            constant = torch.relu(before.bias).repeat_interleave(each)[~inputs]
            taps = weight.reshape(*weight.shape[:2], -1).sum(2)
            bias = bias + taps[:, ~inputs] @ constant
            weight = weight[:, inputs]
        narrow.append(LayerWeights(weight[stays[place]], bias[stays[place]]))
    return tuple(narrow), _further(kept, stays)


def widen_network(affines: Affines, kept: ChannelMasks) -> Affines:
    """Return the network in its original shape, with zeros for removed channels."""
    wide = []
    inputs = torch.ones(kept.inputs, dtype=torch.bool)
    for affine, outputs in zip(affines, kept.outputs, strict=True):
        each = affine.weight.shape[1] // int(inputs.sum())
        columns = inputs.repeat_interleave(each)
        weight = torch.zeros(len(outputs), len(columns), *affine.weight.shape[2:])
        rows = torch.nonzero(outputs)
        weight[rows, torch.nonzero(columns).T] = affine.weight
        bias = torch.zeros(len(outputs))
        bias[outputs] = affine.bias
        wide.append(LayerWeights(weight, bias))
        inputs = outputs
    return tuple(wide)


def _stays(affines: Affines, place: int, threshold: float) -> Tensor:
    """Return the mask of a layer's outputs to keep: above the threshold, or the strongest."""
    weight = affines[place].weight
    if place == len(affines) - 1:
        return torch.ones(len(weight), dtype=torch.bool)
    after = affines[place + 1].weight
    readers = after.transpose(0, 1).reshape(len(weight), -1)
    size = torch.minimum(weight.flatten(1).abs().amax(1), readers.abs().amax(1))
    stays = size >= threshold
    stays[size.argmax()] = True
    return stays


def _further(kept: ChannelMasks, stays: list[Tensor]) -> ChannelMasks:
    outputs = []
    for before, now in zip(kept.outputs, stays, strict=True):
        left = before.clone()
        left[before] = now
        outputs.append(left)
    return ChannelMasks(tuple(outputs), kept.inputs)
