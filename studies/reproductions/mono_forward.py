"""Deep perceptron on scikit-learn's digits for mono_forward.yaml."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

HIDDEN, WIDTH = 5, 100


def make() -> nn.Module:
    """Return a perceptron of five hidden layers; training draws its weights."""
    layers: list[nn.Module] = [nn.Linear(64, WIDTH), nn.ReLU()]
    for _ in range(HIDDEN - 1):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 10))


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return all images in a fixed order, (n, 64), and their digits, (n,)."""
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    return (images[order] / 16).astype(np.float32), digits[order]
