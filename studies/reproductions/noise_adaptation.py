"""Recogniser of digits read row by row, trained on clean images, for noise_adaptation.yaml.

It stands in for a recogniser of speech: an image is a sequence of eight frames of eight features,
read by three bidirectional LSTM layers, and noise is added to the frames.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

CLEAN = 897  # images of the training on clean frames; the other 900 are for the adaptation
UNITS, EPOCHS, BATCH, RATE = 24, 25, 64, 5e-3
NOISE = 0.3
"""Standard deviation of the noise of a feature, whose range is 0 to 1."""


class Recogniser(nn.Module):
    """Three bidirectional LSTM layers, and a layer of classes on the mean over the frames."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LSTM(8, UNITS, batch_first=True, bidirectional=True)
        self.second = nn.LSTM(2 * UNITS, UNITS, batch_first=True, bidirectional=True)
        self.third = nn.LSTM(2 * UNITS, UNITS, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * UNITS, 10)

    def forward(self, frames: Tensor) -> Tensor:
        """Return the logits of a batch of frames, (n, 8, 8), as (n, 10)."""
        for layer in (self.first, self.second, self.third):
            frames = layer(frames)[0]
        found: Tensor = self.head(frames.mean(dim=1))
        return found


@lru_cache(maxsize=1)
def make() -> nn.Module:
    """Return the recogniser after its training on clean frames."""
    torch.manual_seed(0)
    net = Recogniser()
    frames, digits = (torch.tensor(one[:CLEAN]) for one in _digits())
    chance = torch.Generator().manual_seed(0)
    descent = torch.optim.Adam(net.parameters(), lr=RATE)
    for _ in range(EPOCHS):
        for rows in torch.randperm(CLEAN, generator=chance).split(BATCH):
            descent.zero_grad()
            nn.functional.cross_entropy(net(frames[rows]), digits[rows]).backward()
            descent.step()
    return net.eval()


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return the other images with noise, (n, 8, 8), and their digits, (n,)."""
    frames, digits = (one[CLEAN:] for one in _digits())
    noise = np.random.default_rng(1).normal(0, NOISE, frames.shape)
    return (frames + noise).astype(np.float32), digits


def _digits() -> tuple[np.ndarray, np.ndarray]:
    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    return (bunch.images[order] / 16).astype(np.float32), bunch.target[order]
