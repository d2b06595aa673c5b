"""Networks for compression with retraining, as tables of layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.workloads.layers import DIGITS_CNN, MNIST_CNN, Layer, dense

TAIL = (5, 6, 7, 8, 9)
"""The rare classes."""

# LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998: LeNet-300-100, here
# on 8 x 8 pixels.
DIGITS_MLP: tuple[Layer, ...] = (
    dense("fc1", 64, 300),
    dense("fc2", 300, 100),
    dense("fc3", 100, 10, last=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Layers of a network to retrain, and the maximum shift of its training images in pixels."""

    layers: tuple[Layer, ...]
    shift: int


MODELS: Mapping[str, Model] = {
    "digits-cnn": Model(layers=DIGITS_CNN, shift=1),
    "digits-mlp": Model(layers=DIGITS_MLP, shift=0),
    "mnist-cnn": Model(layers=MNIST_CNN, shift=2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Conditions of a retraining: model, fraction of tail-class images, and image noise.

    Only a fraction ``tail_keep`` of the training images of the rare classes (:data:`TAIL`) is used;
    ``noise`` is the standard deviation of normal noise on all pixels, where white is 1.
    """

    model: str = "digits-cnn"
    tail_keep: float = 1.0
    noise: float = 0.0
