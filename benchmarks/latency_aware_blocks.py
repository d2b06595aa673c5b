"""Program that trains small character models of chosen blocks, and times them.

``python benchmarks/latency_aware_blocks.py OUTPUT.csv`` appends the models that OUTPUT.csv lacks;
each takes half a minute on one core. A model is eight blocks: `a` attention of four heads, `f` a
feed-forward network, `m` four such networks of which a gate chooses one for each character, `-`
none. Bits are those per character on the held-out text for search and on that for test, the mean of
three trainings; ``spread`` is the standard deviation of the latter over them. Time is the
processor's for one batch of 32 windows, the least of three medians of 40.
"""

from __future__ import annotations

import csv
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dse_evaluators.workloads.shakespeare import SYMBOLS, Codes, plays

MODELS = ["afafafaf", "afafaf--", "afff----", "ffffffff", "afaf----", "affm----", "afmm----"]
COLUMNS = ("blocks", "bits", "seconds", "test_bits", "spread")
SEEDS, EXPERTS = (0, 1, 2), 4
WIDTH, CONTEXT, BATCH, STEPS = 64, 32, 32, 400


class Attention(nn.Module):
    """Causal attention of four heads."""

    def __init__(self) -> None:
        super().__init__()
        self.inward = nn.Linear(WIDTH, 3 * WIDTH)
        self.outward = nn.Linear(WIDTH, WIDTH)

    def forward(self, stream: Tensor) -> Tensor:
        """Return what the block adds to the stream."""
        rows, length, _ = stream.shape
        parts = self.inward(stream).view(rows, length, 3, 4, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
        added: Tensor = self.outward(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        return added


def feed_forward() -> nn.Module:
    """Return a feed-forward network of four times the width."""
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


class Experts(nn.Module):
    """Feed-forward networks of which each character takes the one with the highest gate.

    Source:
        Fedus et al.: Switch Transformers, 2022 (without the loss that balances the experts).
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(feed_forward() for _ in range(EXPERTS))

    def forward(self, stream: Tensor) -> Tensor:
        """Return what the block adds to the stream."""
        flat = stream.flatten(0, 1)
        weight, chosen = functional.softmax(self.gate(flat), dim=1).max(dim=1)
        added = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            rows = torch.nonzero(chosen == number).flatten()
            added = added.index_add(0, rows, expert(flat[rows]))
        return (added * weight[:, None]).view_as(stream)


class Model(nn.Module):
    """Character model of the given blocks, each with a normalisation before it."""

    def __init__(self, blocks: str) -> None:
        super().__init__()
        kinds = {"a": Attention, "f": feed_forward, "m": Experts}
        self.symbols = nn.Embedding(len(SYMBOLS), WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), kinds[kind]()) for kind in blocks if kind != "-"
        )
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(SYMBOLS)))

    def forward(self, codes: Tensor) -> Tensor:
        """Return the logits of the next symbols."""
        stream = self.symbols(codes) + self.places.weight
        for block in self.blocks:
            stream = stream + block(stream)
        logits: Tensor = self.head(stream)
        return logits


def draw(chunks: Codes, chance: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Return drawn windows and the symbols that follow."""
    rows = chance.integers(len(chunks), size=count)
    starts = chance.integers(chunks.shape[1] - CONTEXT, size=count)
    drawn = torch.tensor(chunks[rows[:, None], starts[:, None] + np.arange(CONTEXT + 1)])
    return drawn[:, :-1], drawn[:, 1:]


def loss(model: Model, drawn: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy of the windows in nats."""
    return functional.cross_entropy(model(drawn[0]).flatten(0, 1), drawn[1].flatten())


def train(blocks: str, seed: int) -> tuple[list[float], float]:
    """Train a model; return its bits on the two held-out texts, and its seconds for a batch."""
    torch.manual_seed(seed)
    chance = np.random.default_rng(seed)
    model, chunks, held = Model(blocks), plays().train, plays().held_out
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model, draw(chunks, chance, BATCH)).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        falling.step()
    with torch.inference_mode():
        bits = [
            float(loss(model, draw(half, np.random.default_rng(1), 1024))) / np.log(2)
            for half in (held["search"], held["test"])
        ]
        codes, times = draw(chunks, chance, BATCH)[0], []
        for _ in range(40):
            begun = time.process_time()
            model(codes)
            times.append(time.process_time() - begun)
    return bits, statistics.median(times)


def measure(blocks: str) -> dict[str, object]:
    """Train the model with each seed, and return its row."""
    bits, seconds = zip(*(train(blocks, seed) for seed in SEEDS), strict=True)
    search, test = np.transpose(bits)
    row = (search.mean(), min(seconds), test.mean(), test.std(ddof=1))
    return dict(zip(COLUMNS, (blocks, *(f"{one:.6f}" for one in row)), strict=True))


def main() -> None:
    """Append the models that the table lacks."""
    torch.set_num_threads(1)
    path = Path(sys.argv[1])
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    with path.open(newline="") as file:
        known = {row["blocks"] for row in csv.DictReader(file)}
    for blocks in MODELS:
        if blocks not in known:
            with path.open("a", newline="") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(measure(blocks))


if __name__ == "__main__":
    main()
