"""Removal of channels without effect from a network, and restoration of its original shape."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dse_evaluators.workloads.network import Affines, LayerWeights


@dataclass(frozen=True, slots=True)
class ChannelMasks:
    """Masks of the outputs that remain in each layer, relative to the original network.

    ``inputs`` is the number of inputs of the first layer.
    """

    outputs: tuple[Tensor, ...]  # each (outputs,), true for outputs that remain
    inputs: int

    @staticmethod
    def everything(affines: Affines) -> ChannelMasks:
        """Return the masks of a network of which no channel has been removed."""
        every = tuple(torch.ones(len(affine.weight), dtype=torch.bool) for affine in affines)
        return ChannelMasks(every, affines[0].weight.shape[1])


def narrower(
    affines: Affines, kept: ChannelMasks, threshold: float
) -> tuple[Affines, ChannelMasks]:
    """Return the network without channels of small weights, and masks of those that remain.

    A channel is removed if all weights of its filter, or all weights that read it, are below. A
    filter of zeros still outputs its rectified bias; that constant is added to the biases of the
    next layer, which is exact except at an image's border.

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
