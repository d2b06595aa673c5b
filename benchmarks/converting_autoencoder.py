"""A converter with a light network against early exits, on digits of which some are noisy.

    python benchmarks/converting_autoencoder.py OUTPUT.csv

All networks are trained on the same 1,000 of scikit-learn's digits, half of them noisy; 400 others
are for search and 397 for test. A network with two exits is trained first. Its first part up to the
first exit is the light network. The converter, an autoencoder, is trained to turn a noisy image
into a clean one of the same class that the light network is sure of, and a clean image into itself.
Each row of the file has the accuracy of a policy on images of which a share is noisy, and the mean
number of multiplications of an image, as means over three trainings. It takes a minute on a core.

Source:
    Mahmud et al.: A Converting Autoencoder Toward Low-latency and Energy-efficient DNN Inference at
    the Edge, 2024 (converter and light network); Teerapittayanon, McDanel, Kung: BranchyNet, 2016.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

TRAINED, SEARCHED = 1000, 400
NOISE = 0.4
"""Standard deviation of the noise on a pixel, where white is 1."""
EPOCHS, BATCH, RATE = 60, 50, 2e-3
SEEDS = (0, 1, 2)
SHARES = (0.1, 0.5, 0.9)
"""Shares of noisy images."""
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)
"""Entropies in nat below which the first exit is taken."""
HIDDEN = (16, 32, 64)
"""Widths of the converter."""
PIXELS, CLASSES = 64, 10
LIGHT_PRODUCTS = 8 * 9 * 64 + 8 * 16 * CLASSES
REST_PRODUCTS = 8 * 32 * 9 * 16 + 32 * 32 * 9 * 16 + 32 * 4 * 64 + 64 * CLASSES


class TwoExits(nn.Module):
    """Convolutional network with an exit after its first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.exit = nn.Sequential(nn.Flatten(), nn.Linear(8 * 16, CLASSES))
        self.rest = nn.Sequential(
            nn.Conv2d(8, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 4, 64),
            nn.ReLU(),
            nn.Linear(64, CLASSES),
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of both exits, (n, classes) each."""
        signal = self.first(images)
        return self.exit(signal), self.rest(signal)


@dataclass(frozen=True, kw_only=True)
class Images:
    """Clean images, (n, 1, 8, 8), the same with noise, and their digits, (n,)."""

    clean: Tensor
    noisy: Tensor
    digits: Tensor

    def mix(self, share: float) -> Tensor:
        """Return the images of which the first ``share`` is noisy; their order was drawn."""
        count = round(share * len(self.clean))
        return torch.cat([self.noisy[:count], self.clean[count:]])


def read_images() -> dict[str, Images]:
    """Return the images of each split."""
    bunch = load_digits()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(bunch.target))
    clean = torch.tensor(bunch.images[order, None] / 16, dtype=torch.float32)
    noisy = clean + NOISE * torch.tensor(rng.normal(size=clean.shape), dtype=torch.float32)
    parts = np.split(np.arange(len(order)), [TRAINED, TRAINED + SEARCHED])
    digits = torch.tensor(bunch.target[order])
    return {
        name: Images(clean=clean[rows], noisy=noisy[rows], digits=digits[rows])
        for name, rows in zip(("train", "search", "test"), parts, strict=True)
    }


def batches(count: int, chance: torch.Generator) -> Iterator[Tensor]:
    """Yield the rows of each step of the training."""
    for _ in range(EPOCHS):
        yield from torch.randperm(count, generator=chance).split(BATCH)


def draw_noise(clean: Tensor, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return images of which half are noisy, and which ones those are."""
    noisy = torch.rand(len(clean), generator=chance) < 0.5
    noise = NOISE * torch.randn(clean.shape, generator=chance)
    return clean + noise * noisy[:, None, None, None], noisy


def train_exits(given: Images, seed: int) -> TwoExits:
    """Return the network, trained by the sum of the exits' cross-entropies."""
    torch.manual_seed(seed)
    net, chance = TwoExits(), torch.Generator().manual_seed(seed)
    descent = torch.optim.Adam(net.parameters(), lr=RATE)
    for rows in batches(len(given.digits), chance):
        shown, _ = draw_noise(given.clean[rows], chance)
        loss = sum(functional.cross_entropy(one, given.digits[rows]) for one in net(shown))
        descent.zero_grad()
        loss.backward()
        descent.step()
    return net.eval()


def train_converter(net: TwoExits, given: Images, width: int, seed: int) -> nn.Module:
    """Return an autoencoder that turns noisy images into clean ones that the first exit knows."""
    torch.manual_seed(seed)
    converter = nn.Sequential(
        nn.Flatten(), nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, PIXELS), nn.Sigmoid()
    )
    chance = torch.Generator().manual_seed(seed)
    descent = torch.optim.Adam(converter.parameters(), lr=RATE)
    with torch.no_grad():
        surest = entropy(net(given.clean)[0]).argsort()
    easy = [surest[given.digits[surest] == digit][:20] for digit in range(CLASSES)]
    for rows in batches(len(given.digits), chance):
        shown, noisy = draw_noise(given.clean[rows], chance)
        drawn = torch.randint(0, 20, (len(rows),), generator=chance).tolist()
        paired = [easy[int(given.digits[row])][at] for row, at in zip(rows, drawn, strict=True)]
        wanted = torch.where(noisy, torch.stack(paired), rows)
        loss = functional.mse_loss(converter(shown), given.clean[wanted].flatten(1))
        descent.zero_grad()
        loss.backward()
        descent.step()
    return converter.eval()


def entropy(logits: Tensor) -> Tensor:
    """Return the entropy of each prediction in nat, (n,)."""
    return torch.distributions.Categorical(logits=logits).entropy()


def measure(
    net: TwoExits, converters: dict[int, nn.Module], given: Images
) -> Iterator[tuple[float, str, float, float]]:
    """Yield share of noisy images, policy, share of right ones, and products of an image."""
    for share in SHARES:
        images = given.mix(share)
        early, late = net(images)
        right = [(one.argmax(1) == given.digits).float() for one in (early, late)]
        whole = LIGHT_PRODUCTS - 8 * 16 * CLASSES + REST_PRODUCTS
        yield share, "whole", float(right[1].mean()), whole
        yield share, "light", float(right[0].mean()), LIGHT_PRODUCTS
        for threshold in THRESHOLDS:
            sure = entropy(early) < threshold
            hits = torch.where(sure, right[0], right[1])
            products = LIGHT_PRODUCTS + REST_PRODUCTS * float((~sure).float().mean())
            yield share, f"exit_{threshold:g}", float(hits.mean()), products
        for width, converter in converters.items():
            light = net(converter(images).reshape(images.shape))[0]
            hits = (light.argmax(1) == given.digits).float()
            yield (
                share,
                f"converter_{width}",
                float(hits.mean()),
                LIGHT_PRODUCTS + 2 * PIXELS * width,
            )


def run(given: dict[str, Images], seed: int) -> list[list[tuple[float, str, float, float]]]:
    """Return the rows of both splits for networks that were trained with a seed."""
    net = train_exits(given["train"], seed)
    converters = {width: train_converter(net, given["train"], width, seed) for width in HIDDEN}
    with torch.inference_mode():
        return [list(measure(net, converters, given[name])) for name in ("search", "test")]


def main(path: Path) -> None:
    """Train the networks, and write a row for each share and policy."""
    torch.set_num_threads(1)
    given = read_images()
    runs = [run(given, seed) for seed in SEEDS]
    numbers = np.array([[[row[2:] for row in split] for split in one] for one in runs]).mean(axis=0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ("accuracy", "products", "test_accuracy", "test_products")
        writer.writerow(["noisy", "policy", *names])
        for (share, policy, *_), search, test in zip(runs[0][0], *numbers, strict=True):
            shown = [f"{search[0]:.4f}", f"{search[1]:.0f}", f"{test[0]:.4f}", f"{test[1]:.0f}"]
            writer.writerow([share, policy, *shown])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
