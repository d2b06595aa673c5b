"""Splits of a data set into calibration, search and test examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Ints
from dse.errors import SpecError, nearest

PARTS = ("calibration", "search", "test")
"""Parts of a data set: for calibrating operators, for the search, and for the final evaluation."""

Examples = NDArray[Any]


def make_splits(
    inputs: Examples,  # (n, ...)
    targets: Examples | None,  # (n, ...)
    shares: tuple[float, float, float],
    seed: int,
) -> Ints:
    """Assign each example to a split: stratified by class, equal inputs in one split.

    Args:
        inputs: the inputs of the examples; equal ones count as one example.
        targets: integer classes, which are stratified; others are not.
        shares: fractions of the splits ``calibration``, ``search`` and ``test``; their sum is 1.
        seed: seed of the random order.

    Returns:
        The index of each example's split in ``PARTS``, (n,).

    Raises:
        SpecError: a part would have no example.
    """
    _, first, group = np.unique(_rows(inputs), return_index=True, return_inverse=True)
    classes = _classes(targets, len(inputs))[first]
    rng = np.random.default_rng(seed)
    ends = np.cumsum(shares)
    parts = np.zeros(len(first), dtype=np.int64)
    for label in np.unique(classes):
        places = rng.permutation(np.flatnonzero(classes == label))
        offset = rng.random() if len(places) < len(PARTS) else 0.5  # rare classes go anywhere
        rank = (np.arange(len(places)) + offset) / len(places)
        parts[places] = np.searchsorted(ends[:-1], rank, side="right")
    _check_parts(parts)
    return parts[group.reshape(-1)]


def join_inputs(inputs: Sequence[Examples]) -> Examples:
    """Join several inputs into one array of bytes, (n, bytes), to find equal examples.

    Args:
        inputs: the inputs, each (n, ...).
    """
    rows = [np.ascontiguousarray(one).reshape(len(one), -1) for one in inputs]
    return np.concatenate([one.view(np.uint8) for one in rows], axis=1)


def read_splits(words: Examples) -> Ints:
    """Return the index in ``PARTS`` of the split that each word names, (n,).

    Args:
        words: texts, (n,): ``calibration``, ``search`` or ``test``.

    Raises:
        SpecError: a word names no part, or a part has no example.
    """
    texts = [str(word) for word in words.tolist()]
    wrong = next((text for text in texts if text not in PARTS), None)
    if wrong is not None:
        row = texts.index(wrong) + 1
        raise SpecError(f"row {row}: there is no split {wrong!r}", hint=nearest(wrong, PARTS))
    parts = np.array([PARTS.index(text) for text in texts], dtype=np.int64)
    _check_parts(parts)
    return parts


def _check_parts(parts: Ints) -> None:
    for place, name in enumerate(PARTS):
        if not (parts == place).any():
            raise SpecError(
                f"the split {name!r} has no example among {len(parts)} different ones",
                hint="give more examples, or other shares: calibration: 0.2, test: 0.4",
            )


def _rows(inputs: Examples) -> Examples:
    """Return each example as one opaque value, (n,), so that equal examples are equal values."""
    table = np.ascontiguousarray(inputs).reshape(len(inputs), -1)
    return table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).reshape(-1)


def _classes(targets: Examples | None, count: int) -> Examples:
    if targets is None or targets.ndim != 1 or targets.dtype.kind not in "iu":
        return np.zeros(count, dtype=np.int64)
    return targets
