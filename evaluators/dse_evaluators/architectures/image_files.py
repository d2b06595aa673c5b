"""Labelled images that a supernet is trained on: scikit-learn's digits, or a file of the user."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from dse.errors import SpecError
from dse_evaluators.workloads.images import ImageDataset, halve_examples, split_rows
from dse_evaluators.workloads.workload import Split

DIGITS = "digits"
_HELD_OUT_SHARE, _CALIBRATION_SHARE = 1 / 4, 1 / 6
_LEAST = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageSplits:
    """Disjoint splits of an image data set for training, calibration and evaluation."""

    train: ImageDataset
    calibration: ImageDataset
    judging: Mapping[Split, ImageDataset]

    @property
    def side(self) -> int:
        """Side of the images in pixels."""
        return int(self.train.images.shape[-1])


@lru_cache(maxsize=4)
def read_images(data: str) -> ImageSplits:
    """Return the splits of a data set: ``digits``, or a file ``.npz`` with images and labels.

    Raises:
        SpecError: the file cannot be read, or its arrays are no labelled square images.
    """
    if data == DIGITS:
        from dse_evaluators.workloads.digits import digits  # slow: scikit-learn

        found = digits()
        train, calibration, held_out = found.train, found.calibration, found.held_out
    else:
        examples = _read_file(Path(data))
        parts = split_rows(examples.labels, (_HELD_OUT_SHARE, _CALIBRATION_SHARE), seed=0)
        train, held_out, calibration = (examples.at(rows) for rows in parts)
    search, test = halve_examples(held_out)
    return ImageSplits(
        train=train, calibration=calibration, judging={"search": search, "test": test}
    )


def digest_images(data: str) -> str:
    """Return a digest of a file of images; for a shipped data set, its name.

    Raises:
        SpecError: the file cannot be read.
    """
    if data == DIGITS:
        return data
    try:
        return hashlib.sha256(Path(data).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise _unreadable(data, error.strerror or "") from error


def _read_file(path: Path) -> ImageDataset:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            images, labels = arrays["images"], arrays["labels"]
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable(str(path), str(error)) from error
    square = images.ndim == 4 and images.shape[2] == images.shape[3] and images.shape[3] % 4 == 0
    if not square or labels.shape != images.shape[:1] or len(labels) < _LEAST:
        raise SpecError(
            f"{path}: images are {images.shape}, labels {labels.shape}",
            hint=f"images (n, channels, side, side), labels (n,); n from {_LEAST}, side 4, 8...",
        )
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
        raise SpecError(f"{path}: labels are no whole numbers from 0")
    return ImageDataset(images=images.astype(np.float32), labels=labels.astype(np.int64))


def _unreadable(path: str, why: str) -> SpecError:
    hint = "data: digits, or a file .npz with the arrays images and labels"
    return SpecError(f"the images {path!r} cannot be read: {why}", hint=hint)
