"""Two recurrent networks for scikit-learn's digits, read row by row, for binary_rnn.yaml.

They differ in the activation of their cells, tanh or the sign, which is trained straight through.
Both are trained here on one thread, from the same start, on the same images.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

ROWS, PIXELS, WIDTH, CLASSES = 8, 8, 64, 10
TRAINED, SEARCHED = 1000, 400  # the other images are for the test
EPOCHS, BATCH, RATE = 40, 50, 3e-3


def make_tanh() -> nn.Module:
    """Return the network whose cells have the activation tanh, trained."""
    return _train(Rnn(torch.tanh))


def make_binary() -> nn.Module:
    """Return the network whose cells give -1 or 1, trained."""
    return _train(Rnn(sign))


def images() -> dict[str, np.ndarray]:
    """Return the images, (n, rows, pixels), their digits, and which are for training."""
    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    split = np.array(["test"] * len(order), dtype="<U11")
    split[: TRAINED + SEARCHED] = "search"
    split[:TRAINED] = "calibration"
    pixels = (bunch.images[order] / 16).astype(np.float32)
    return {"inputs": pixels, "targets": bunch.target[order], "split": split}


def sign(signal: Tensor) -> Tensor:
    """Return -1 or 1, with the gradient of the signal clipped to that range."""
    clipped = signal.clamp(-1, 1)
    return clipped + (torch.where(signal >= 0, 1.0, -1.0) - clipped).detach()


class Rnn(nn.Module):
    """Recurrent network whose cells take a row of pixels and their own last outputs."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.cells = nn.Linear(PIXELS + WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)
        self._activation = activation

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the logits of images, (n, classes)."""
        state = pixels.new_zeros(len(pixels), WIDTH)
        for row in pixels.unbind(1):
            state = self._activation(self.cells(torch.cat([row, state], 1)))
        return self.head(state)


def _train(net: Rnn) -> nn.Module:
    data = images()
    chosen = data["split"] == "calibration"
    pixels, digits = (torch.tensor(data[name][chosen]) for name in ("inputs", "targets"))
    chance = torch.Generator().manual_seed(0)
    for one in net.parameters():
        bound = one.shape[-1] ** -0.5
        nn.init.uniform_(one, -bound, bound, generator=chance)
    descent = torch.optim.Adam(net.parameters(), lr=RATE)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(EPOCHS):
            for rows in torch.randperm(TRAINED, generator=chance).split(BATCH):
                descent.zero_grad()
                nn.functional.cross_entropy(net(pixels[rows]), digits[rows]).backward()
                descent.step()
    finally:
        torch.set_num_threads(threads)
    return net.eval()
