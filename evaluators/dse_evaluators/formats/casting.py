"""Casting of arrays to a :class:`NumberFormat`: scales, rounding, and bit patterns."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single, Words, check_finite
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.integers import symmetric
from dse_evaluators.formats.names import format_of
from dse_evaluators.formats.words import NumberFormat


def largest(word: NumberFormat) -> float:
    """Return the largest finite number of a number format; integer ranges are symmetric."""
    return _grid(word).top


def needs_scale(word: NumberFormat) -> bool:
    """Return whether a number format needs a scale: integers, and floats of at most 8 bits.

    Larger floats have enough range without a scale.
    """
    return word.kind == "int" or word.bits <= 8


def scales(
    peaks: Single,  # (s,), the largest magnitudes
    word: NumberFormat,
) -> Single:
    """Return the scales that map a format's largest number to s largest magnitudes, (s,).

    A magnitude of zero, of an all-zero tensor, gets the scale 1.

    Source:
        Jacob et al., Quantization and Training of Neural Networks for Efficient
        Integer-Arithmetic-Only Inference, 2018, eq. 1, with zero-point 0; Krishnamoorthi,
        Quantizing Deep Convolutional Networks for Efficient Inference, 2018, section 2.2.
    """
    if not needs_scale(word):
        return np.ones_like(peaks)
    smallest = np.finfo(np.float32).tiny
    raw = np.maximum(peaks / np.float32(largest(word)), smallest)
    return np.where(peaks > 0, raw, np.float32(1)).astype(np.float32)


def round_to_format(
    values: Single,
    scale: Single,  # broadcasts against values
    word: NumberFormat,
) -> Single:
    """Round to the nearest scaled numbers of the format, ties to even; clip larger values."""
    return _multiply_back(_nearest(values, scale, word), scale)


def words_of(
    values: Single,
    scale: Single,  # broadcasts against values
    word: NumberFormat,
) -> Words:
    """Return the bit patterns of values / scale, rounded to the format; -0 becomes +0."""
    return _grid(word).codes(_nearest(values, scale, word))


def values_of(
    words: Words,
    scale: Single,  # broadcasts against words
    word: NumberFormat,
) -> Single:
    """Return the numbers that the bit patterns represent, multiplied by the scale."""
    return _multiply_back(_grid(word).values(words), scale)


def check_values(values: Single) -> None:
    """Check that the array is not empty and that all values are finite.

    Raises:
        EvaluationError: the array is empty, or a value is infinite or NaN.
    """
    if values.size == 0:
        raise EvaluationError("an empty tensor has no scale")
    check_finite(values)


def _nearest(values: Single, scale: Single, word: NumberFormat) -> Single:
    """Return values / scale rounded to the nearest numbers of the format; -0 becomes +0."""
    check_values(values)
    quotients = (values / scale).astype(np.float32)
    _grid(word).snap(quotients, None)
    quotients += np.float32(0)
    return quotients


def _multiply_back(quotients: NDArray[np.generic], scale: Single) -> Single:
    """Return quotients times scale, clipped to the finite range of float32."""
    top = np.finfo(np.float32).max
    wide = quotients.astype(np.float32).astype(np.float64) * scale
    return np.clip(wide, -top, top).astype(np.float32)


@cache
def _grid(word: NumberFormat) -> Grid:
    """Return the grid (the representable numbers and their codes) of the format."""
    if word.kind == "int":
        return symmetric(word.bits)
    return format_of(f"fp:e{word.exponent}m{word.mantissa}").grid
