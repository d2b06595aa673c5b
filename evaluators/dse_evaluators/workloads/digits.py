"""Scikit-learn's handwritten digits: real images, split once and for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

CLASSES = 10
_SPLIT_SEED = 0
_HELD_OUT_SHARE = 1 / 4
_CALIBRATION_SHARE = 1 / 6
_WHITE = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Images with pixels in [0, 1], and which digit each shows."""

    images: NDArray[np.float32]  # (n, 1, 8, 8)
    labels: NDArray[np.int64]  # (n,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """Three parts that share no image, each with the same mix of digits.

    Weights are learnt from ``train``, scales and corrections from ``calibration``; ``held_out``
    is for judging only.
    """

    train: Examples
    calibration: Examples
    held_out: Examples


def digits() -> Digits:
    """The 1,797 images of the package, always in the same parts.

    Source:
        E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning
        Repository, 1998 (its test part).
    """
    package = load_digits()
    images = (package.images / _WHITE).astype(np.float32)[:, None]
    labels = package.target.astype(np.int64)
    train, calibration, held_out = (
        Examples(images=images[rows], labels=labels[rows]) for rows in _parts(labels)
    )
    return Digits(train=train, calibration=calibration, held_out=held_out)


def _parts(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """The rows of train, calibration and held-out, drawn from each class by its own share."""
    rng = np.random.default_rng(_SPLIT_SEED)
    parts: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
    for digit in range(CLASSES):
        rows = rng.permutation(np.flatnonzero(labels == digit))
        held_out = round(len(rows) * _HELD_OUT_SHARE)
        calibration = held_out + round(len(rows) * _CALIBRATION_SHARE)
        parts[0].append(rows[calibration:])
        parts[1].append(rows[held_out:calibration])
        parts[2].append(rows[:held_out])
    return tuple(np.sort(np.concatenate(part)) for part in parts)
