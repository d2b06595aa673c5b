"""Array types and float32 bit masks for number formats, and largest magnitudes by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError

Single = NDArray[np.float32]
Words = NDArray[np.uint32]
Bits = NDArray[np.int32]

MAGNITUDE = np.int32(0x7FFFFFFF)
SIGN = np.int32(-0x80000000)
EXPONENT = np.int32(0x7F800000)
INFINITE = 0x7F800000

CHUNK = 1 << 17
"""Number of values processed at once: a few arrays of this size stay in the L2 cache."""


def chunks(
    shape: tuple[int, ...],  # blocks, numbers in each
    at_once: int = CHUNK,
) -> Iterator[tuple[slice, slice]]:
    """Yield row and column slices that divide a table of blocks into chunks that fit the cache."""
    blocks, width = shape
    high = max(1, at_once // width)
    for row in range(0, blocks, high):
        for column in range(0, width, at_once):
            yield slice(row, row + high), slice(column, column + at_once)


def peaks(
    blocks: Single,  # (b, g)
) -> Single:
    """Return the largest magnitude of each block, (b,).

    Raises:
        EvaluationError: a value is infinite or NaN.
    """
    found = np.zeros(len(blocks), dtype=np.int32)
    for rows, columns in chunks(blocks.shape):
        # The bits of positive floats are ordered as the floats are, and integers compare faster.
        magnitudes = blocks[rows, columns].view(np.int32) & MAGNITUDE
        np.maximum(found[rows], _largest(magnitudes), out=found[rows])
    if found.max() >= INFINITE:
        check_finite(blocks)
    return found.view(np.float32)


def check_finite(values: Single) -> None:
    """Check that all values are finite.

    Raises:
        EvaluationError: a value is infinite or NaN.
    """
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        raise EvaluationError(f"{count} of {values.size} values are infinite or not a number")


def _largest(
    table: Bits,  # (b, g)
) -> Bits:
    """Return the maximum of each row, (b,).

    For power-of-two widths, halving a flat array is several times faster than reducing rows.
    """
    width = table.shape[1]
    if width & (width - 1):
        return np.maximum.reduce(table, axis=1)
    flat = table.ravel()
    while width > 1:
        flat = np.maximum(flat[0::2], flat[1::2])
        width //= 2
    return flat
