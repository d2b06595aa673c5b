"""Labelled images and their disjoint splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDataset:
    """Images with pixels in [0, 1], and the class label of each image."""

    images: NDArray[np.float32]  # (n, channels, height, width)
    labels: NDArray[np.int64]  # (n,)

    def at(self, rows: Rows) -> ImageDataset:
        """Return the subset of images and labels with these indices."""
        return ImageDataset(images=self.images[rows], labels=self.labels[rows])


def split_rows(labels: NDArray[np.int64], shares: Sequence[float], seed: int) -> tuple[Rows, ...]:
    """Split example indices at random into parts with the same class frequencies (stratified).

    The first part consists of the examples that are in no other part.

    Args:
        labels: the class of each example, (n,).
        shares: fraction of the examples in each part but the first, from 0 to 1.
        seed: the seed of the random split.
    """
    rng = np.random.default_rng(seed)
    parts: list[list[Rows]] = [[] for _ in (None, *shares)]
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        taken = 0
        for part, share in zip(parts[1:], shares, strict=True):
            end = taken + round(len(rows) * share)
            part.append(rows[taken:end])
            taken = end
        parts[0].append(rows[taken:])
    return tuple(np.sort(np.concatenate(part)) for part in parts)


def halve_examples(examples: ImageDataset) -> tuple[ImageDataset, ImageDataset]:
    """Split examples into two halves, stratified: those of a class alternate between them."""
    order = np.argsort(examples.labels, kind="stable")
    return examples.at(np.sort(order[0::2])), examples.at(np.sort(order[1::2]))
