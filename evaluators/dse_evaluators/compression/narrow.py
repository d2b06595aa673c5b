"""Pruning of a network's filters or weights, with each layer refitted by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse.core.values import Ints
from dse_evaluators.compression.reference import Reference
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.network import (
    Affines,
    LayerWeights,
    NetworkStage,
    apply_layer,
    passed_on,
)

RIDGE = 1e-2
"""Ridge penalty on the change of the weights, as a fraction of the inputs' mean variance."""

_MAX_TURNS = 60

_TOLERANCE = 1e-4  # relative to the initial residual


@dataclass(frozen=True, slots=True)
class Pruned:
    """Weights of a network after filters were removed, with the kept filters' indices by layer."""

    affines: Affines
    kept: tuple[Ints, ...]  # indices of each layer's kept filters


def narrow_network(whole: Reference, keep: float) -> Pruned:
    """Return the network with a fraction ``keep`` of the filters of every layer but the last.

    Each layer in turn is refitted, so that the inputs that remain give its original outputs.
    """
    shares = [keep if stage.rectified else 1.0 for stage in whole.network]
    kept = tuple(
        strongest(affine.weight.numpy(), share)
        for affine, share in zip(whole.affines, shares, strict=True)
    )
    affines = tuple(_cut(whole, kept, place) for place in range(len(kept)))
    if keep == 1:
        return Pruned(affines, kept)
    return Pruned(_repair_layers(whole, affines, kept, sparse=False), kept)


def sparse(whole: Reference, pruned: Pruned, sparsity: float) -> Pruned:
    """Set a fraction ``sparsity`` of a network's weights to zero, and refit the other weights."""
    weights = prune_smallest([affine.weight.numpy() for affine in pruned.affines], sparsity)
    affines = tuple(
        LayerWeights(torch.tensor(weight), affine.bias)
        for weight, affine in zip(weights, pruned.affines, strict=True)
    )
    if sparsity == 0:
        return pruned
    return Pruned(_repair_layers(whole, affines, pruned.kept, sparse=True), pruned.kept)


def _repair_layers(
    whole: Reference, affines: Affines, kept: tuple[Ints, ...], *, sparse: bool
) -> Affines:
    """Refit layers in order to their original outputs, given the refitted layers before each."""
    signal = whole.calibration
    repaired = []
    for place, stage in enumerate(whole.network):
        wanted = whole.outputs[place][:, torch.tensor(kept[place])]
        repaired.append(refit_layer(stage, affines[place], signal, wanted, sparse=sparse))
        signal = passed_on(stage, apply_layer(stage, repaired[-1], signal))
    return tuple(repaired)


def _cut(whole: Reference, kept: tuple[Ints, ...], place: int) -> LayerWeights:
    """Return a layer without its removed filters, and without inputs from removed filters.

    The first layer keeps all its inputs.
    """
    rows = torch.tensor(kept[place])
    weight, bias = whole.affines[place].weight[rows], whole.affines[place].bias[rows]
    if place > 0:
        # A dense layer has a column for each pixel of each filter before it.
        pixels = weight.shape[1] // len(whole.affines[place - 1].weight)
        columns = kept[place - 1][:, None] * pixels + np.arange(pixels)
        weight = weight[:, torch.tensor(columns.ravel())]
    return LayerWeights(weight.contiguous(), bias)


def prune_smallest(weights: Sequence[Single], sparsity: float) -> list[Single]:
    """Set the smallest weights of all layers together to zero; among ties, the earlier.

    Args:
        weights: the layers' tensors, ranked together by magnitude.
        sparsity: fraction of all weights that is set to zero, rounded to a whole count.

    Source:
        Han et al., Learning both Weights and Connections for Efficient Neural Networks, 2015;
        global threshold as in Blalock et al., What is the State of Neural Network Pruning?, 2020.
    """
    flat = np.concatenate([weight.ravel() for weight in weights])
    dropped = np.argsort(np.abs(flat), kind="stable")[: round(sparsity * flat.size)]
    flat[dropped] = 0.0
    parts = np.split(flat, np.cumsum([weight.size for weight in weights])[:-1])
    return [part.reshape(w.shape) for part, w in zip(parts, weights, strict=True)]


def strongest(
    weight: Single,  # (filters, ...)
    keep: float,
) -> Ints:
    """Return the indices of the filters with the largest L1 norms, ascending; at least one.

    Source:
        Li et al., Pruning Filters for Efficient ConvNets, 2017, section 3.1.
    """
    norms = np.abs(weight.astype(np.float64)).reshape(len(weight), -1).sum(axis=1)
    count = max(1, round(keep * len(weight)))
    return np.sort(np.argsort(-norms, kind="stable")[:count])


def refit_layer(
    stage: NetworkStage,
    start: LayerWeights,
    inputs: Tensor,  # (c, channels, ...)
    wanted: Tensor,  # (c, filters, ...)
    *,
    sparse: bool = False,
) -> LayerWeights:
    """Minimise |X W + b - Y|^2 + r |W - W0|^2 over weights W and bias b, W0 the start.

    With centred X and Y, the minimum solves (X'X + r I) W = X'Y + r W0.

    Args:
        stage: the layer.
        start: initial weights W0.
        inputs: the layer's inputs for the calibration images; X has one row per output position.
        wanted: the layer's original outputs, Y.
        sparse: keep the zeros of W0, and fit only the other weights.

    Source:
        He, Zhang, Sun: Channel Pruning for Accelerating Very Deep Neural Networks, 2017, eq. 1
        and section 3.1 (ii), reconstruction by least squares; the ridge towards W0 is added.
    """
    table = _windows(stage, start, inputs)  # (rows, columns)
    target = wanted.movedim(1, -1).flatten(0, -2)  # (rows, filters)
    inputs_mean, target_mean = table.mean(0), target.mean(0)
    table = table - inputs_mean
    gram = (table.T @ table).double()
    moment = (table.T @ (target - target_mean)).double()
    weight = start.weight.flatten(1).T.double()  # (columns, filters)
    ridge = RIDGE * gram.diagonal().mean() + torch.finfo(torch.float32).tiny
    gram.diagonal().add_(ridge)
    moment += ridge * weight
    fitted = _solve_by_cg(gram, moment, weight) if sparse else torch.linalg.solve(gram, moment)
    bias = target_mean.double() - inputs_mean.double() @ fitted
    return LayerWeights(fitted.T.float().reshape(start.weight.shape).contiguous(), bias.float())


def _solve_by_cg(
    gram: Tensor,  # (columns, columns)
    moment: Tensor,  # (columns, filters)
    start: Tensor,  # (columns, filters)
) -> Tensor:
    """Solve ``gram @ W = moment`` for the non-zeros of each filter, by conjugate gradients.

    Source:
        Hestenes, Stiefel: Methods of Conjugate Gradients for Solving Linear Systems, 1952, eq. 3:1;
        all filters at once, each with its own step.
    """
    mask = (start != 0).double()
    smallest = torch.finfo(torch.float64).tiny
    fitted = start.clone()
    residual = mask * (moment - gram @ fitted)
    direction = residual
    error = residual.square().sum(0)
    enough = _TOLERANCE**2 * error
    for _ in range(_MAX_TURNS):
        if bool((error <= enough).all()):
            break
        change = mask * (gram @ direction)
        step = error / ((direction * change).sum(0) + smallest)
        fitted = fitted + step * direction
        residual = residual - step * change
        before, error = error, residual.square().sum(0)
        direction = residual + error / (before + smallest) * direction
    return fitted


def _windows(stage: NetworkStage, affine: LayerWeights, inputs: Tensor) -> Tensor:
    """Return one row per output position with the inputs that the layer multiplies (im2col)."""
    if stage.dense:
        return inputs.flatten(1)
    height, width = affine.weight.shape[2:]
    windows = functional.unfold(inputs, (height, width), padding=stage.padding, stride=stage.stride)
    return windows.movedim(1, -1).flatten(0, 1)
