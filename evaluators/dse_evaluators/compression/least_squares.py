"""Least-squares fit of a layer's weights to its original outputs, from its new inputs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.network import LayerWeights, NetworkStage

RIDGE = 1e-2
"""Ridge penalty on the change of the weights, as a fraction of the inputs' mean variance."""

_MAX_TURNS = 60
_TOLERANCE = 1e-4  # relative to the initial residual


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
