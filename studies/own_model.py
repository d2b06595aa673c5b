"""Stand-in for your model and data in own_model.yaml: a small CNN for scikit-learn's digits."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn


def make() -> nn.Module:
    """Return the network, trained on every second image."""
    images, labels = (torch.tensor(one[::2]) for one in _digits())
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 32, 1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    descent = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(60):
        descent.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        descent.step()
    return net.eval()


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return the other images, (n, 1, 8, 8), and their digits, (n,)."""
    images, labels = _digits()
    return images[1::2], labels[1::2]


def _digits() -> tuple[np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype(np.float32).reshape(-1, 1, 8, 8), labels
