"""Array types and float32 bit masks for number formats, and largest magnitudes by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def as_single(
    values: Any,  # an array of any library, or nested lists
) -> Single:
    """Return numbers in float32.

    Wider numbers are rounded to odd: rounding the result to a narrower grid then gives what
    rounding the number itself gives. A number that float32 holds is unchanged.

    Source:
        Boldo, Melquiond: Emulation of a FMA and Correctly Rounded Sums: Proved Algorithms Using
        Rounding to Odd, 2008, theorem 3.

    Raises:
        EvaluationError: the values are no real numbers, or exceed the range of float32.
    """
    array = as_array(values)
    if array.dtype == np.float32:
        return array
    if not np.can_cast(array.dtype, np.float32, "same_kind"):
        raise EvaluationError(
            f"values of type {array.dtype} are not real numbers",
            hint="give floats, or the real and the imaginary part as two tensors",
        )
    if np.can_cast(array.dtype, np.float32):
        return array.astype(np.float32)
    return _round_to_odd(array.astype(np.float64))


def as_array(
    values: Any,  # an array of any library, or nested lists
) -> NDArray[Any]:
    """Return values as an array of numpy; tensors of types that numpy lacks become float32."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if values.is_floating_point() and values.dtype.itemsize <= 2:
            values = values.float()
    return np.asarray(values)


def _round_to_odd(wide: NDArray[np.float64]) -> Single:
    """Return values in float32; an inexact value becomes its neighbour with an odd mantissa.

    Raises:
        EvaluationError: a finite value exceeds the range of float32.
    """
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    lost = np.isinf(single) & np.isfinite(wide)
    if lost.any():
        raise EvaluationError(
            f"{int(lost.sum())} of {wide.size} values exceed the range of float32, such as "
            f"{wide[lost].flat[0]:g}",
            hint="scale the tensor",
        )
    turned = (single != wide) & (single.view(np.uint32) % 2 == 0)
    other = np.nextafter(single, np.where(single < wide, np.inf, -np.inf).astype(np.float32))
    return np.where(turned, other, single)


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
