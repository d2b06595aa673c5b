"""Operations of training and of inference, counted from the weights that are multiplied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.values import Floats
from dse_evaluators.workloads.layers import Layer

_MULTIPLY_ADD = 2  # operations


def whole_weights(layers: Sequence[Layer]) -> Floats:
    """Return the number of weights of each layer of the uncompressed network, (layers,)."""
    return np.array([layer.weights for layer in layers], dtype=np.float64)


def forward_flop(
    weights: Floats,  # (..., layers)
    layers: Sequence[Layer],
) -> Floats:
    """Return the operations per image of a forward pass, given weights by layer, (...,).

    Every weight is used once per output position of its layer.
    """
    places = np.array([layer.output_height * layer.output_width for layer in layers])
    return _MULTIPLY_ADD * (weights * places).sum(axis=-1)


def training_flop(
    weights: Floats,  # (epochs, layers), as they were in each
    layers: Sequence[Layer],
    images: int,
    *,
    has_teacher: bool = False,
) -> float:
    """Return the operations of a training, over all epochs of ``images`` images each.

    Forward, gradient of the weights and gradient of the inputs cost the same; the first layer has
    no gradient of its inputs. ``has_teacher`` adds a forward pass of the uncompressed teacher
    network.

    Source:
        The derivatives of y = W x: W' g costs what W x does, and so does the outer product g x';
        Lym et al., PruneTrain, 2019, count the same three passes in their code.
    """
    inputs = weights.copy()
    inputs[:, 0] = 0
    each = 2 * forward_flop(weights, layers) + forward_flop(inputs, layers)
    if has_teacher:
        each = each + forward_flop(whole_weights(layers), layers)
    return float(images * each.sum())
