"""Scikit-learn's handwritten digits, always in the same train and evaluation splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from dse_evaluators.workloads.images import ImageDataset, split_rows

_SPLIT_SEED = 0
_HELD_OUT_SHARE = 1 / 4
_CALIBRATION_SHARE = 1 / 6
_WHITE = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """Disjoint splits of the images, stratified by digit.

    Networks are trained on ``train``; compression determines scales and corrections on
    ``calibration``; ``held_out`` is used for evaluation only.
    """

    train: ImageDataset
    calibration: ImageDataset
    held_out: ImageDataset


def digits() -> Digits:
    """Return scikit-learn's 1,797 images of digits, always in the same splits.

    Source:
        E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning
        Repository, 1998 (its test part).
    """
    package = load_digits()
    examples = ImageDataset(
        images=(package.images / _WHITE).astype(np.float32)[:, None],
        labels=package.target.astype(np.int64),
    )
    parts = split_rows(examples.labels, (_HELD_OUT_SHARE, _CALIBRATION_SHARE), _SPLIT_SEED)
    train, held_out, calibration = (examples.at(rows) for rows in parts)
    return Digits(train=train, calibration=calibration, held_out=held_out)
