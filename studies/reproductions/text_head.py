"""Two classifiers of scikit-learn's digits for text_head.yaml, which differ in how the head starts.

Both have the same backbone, head and training: a projection to 384 features and a layer of
classes. That layer starts from embeddings of sentences about the digits, or at random.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from dse_evaluators.faults.text_head import embed_classes, text_head

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SHAPES = (
    "a closed oval ring",
    "a single vertical stroke",
    "a curve at the top and a flat base",
    "two open curves, one above the other",
    "an angle and a vertical stroke that cross",
    "a flat top and an open curve below",
    "a long stroke with a closed loop at the bottom",
    "a flat top and a slanted stroke",
    "two closed loops, one above the other",
    "a closed loop at the top with a tail",
)
TRAINED = 1000  # the other images are for the campaign
EPOCHS, BATCH, RATE = 40, 50, 2e-3


def make_text() -> nn.Module:
    """Return the classifier whose head starts from sentences, trained."""
    sentences = [
        [f"a photo of the handwritten digit {name}", f"the number {name}", f"{name}: {shape}"]
        for name, shape in zip(NAMES, SHAPES, strict=True)
    ]
    return _train(embed_classes(sentences))


def make_random() -> nn.Module:
    """Return the classifier whose head starts at random, as PyTorch does it, trained."""
    bound = 384**-0.5
    drawn = np.random.default_rng(0).uniform(-bound, bound, (len(NAMES), 384))
    return _train(drawn.astype(np.float32))


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return images that no classifier was trained on, (n, 1, 8, 8), and their digits, (n,)."""
    images, digits = _digits()
    return images[TRAINED:], digits[TRAINED:]


def _train(classes: np.ndarray) -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        text_head(64, classes),
    )
    images, digits = (torch.tensor(one[:TRAINED]) for one in _digits())
    chance = torch.Generator().manual_seed(0)
    descent = torch.optim.Adam(net.parameters(), lr=RATE)
    for _ in range(EPOCHS):
        for rows in torch.randperm(TRAINED, generator=chance).split(BATCH):
            descent.zero_grad()
            nn.functional.cross_entropy(net(images[rows]), digits[rows]).backward()
            descent.step()
    return net.eval()


def _digits() -> tuple[np.ndarray, np.ndarray]:
    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    return (bunch.images[order] / 16).astype(np.float32)[:, None], bunch.target[order]
