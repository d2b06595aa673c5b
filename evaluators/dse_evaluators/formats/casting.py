"""Arrays in a number format: the scale, the nearest word to each value, and the word's bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError
from dse_evaluators.formats.words import NumberFormat

Single = NDArray[np.float32]
Words = NDArray[np.uint32]

_PATTERN = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def largest(word: NumberFormat) -> float:
    """The largest finite number of the format; an integer's range is symmetric about zero."""
    if word.kind == "int":
        return float(2 ** (word.bits - 1) - 1)
    return float(ml_dtypes.finfo(_dtype(word)).max)  # type: ignore[no-untyped-call]


def is_scaled(word: NumberFormat) -> bool:
    """True for integers and for floats of at most 8 bits; larger floats have range to spare."""
    return word.kind == "int" or word.bits <= 8


def scales(
    peaks: Single,  # (s,), the largest magnitudes
    word: NumberFormat,
) -> Single:
    """What a word is multiplied with so that the largest word is the peak, (s,).

    The peak of an all-zero tensor takes any scale; it gets 1.

    Source:
        Jacob et al., Quantization and Training of Neural Networks for Efficient
        Integer-Arithmetic-Only Inference, 2018, eq. 1, with zero-point 0; Krishnamoorthi,
        Quantizing Deep Convolutional Networks for Efficient Inference, 2018, section 2.2.
    """
    if not is_scaled(word):
        return np.ones_like(peaks)
    smallest = np.finfo(np.float32).tiny
    raw = np.maximum(peaks / np.float32(largest(word)), smallest)
    return np.where(peaks > 0, raw, np.float32(1)).astype(np.float32)


def rounded(
    values: Single,
    scale: Single,  # broadcasts against values
    word: NumberFormat,
) -> Single:
    """The nearest numbers that the format has, ties to even; what is too large saturates."""
    return _restored(_nearest(values, scale, word), scale)


def words_of(
    values: Single,
    scale: Single,  # broadcasts against values
    word: NumberFormat,
) -> Words:
    """The bit pattern of each value's nearest word; zero is all zeros, of either sign."""
    quotients = _nearest(values, scale, word)
    if word.kind == "int":
        return quotients.astype(np.int32).view(np.uint32) & _mask(word)
    cast = quotients.astype(_dtype(word))
    return cast.view(_PATTERN[cast.itemsize * 8]).astype(np.uint32) & _mask(word)


def values_of(
    words: Words,
    scale: Single,  # broadcasts against words
    word: NumberFormat,
) -> Single:
    """The numbers that the bit patterns stand for."""
    if word.kind == "int":
        sign = np.uint32(1 << (word.bits - 1))
        return _restored(((words ^ sign).astype(np.int64) - int(sign)).astype(np.float32), scale)
    dtype = _dtype(word)
    return _restored(words.astype(_PATTERN[dtype.itemsize * 8]).view(dtype), scale)


def check_values(values: Single) -> None:
    """Nothing, if there are values and all are finite.

    Raises:
        EvaluationError: there is none, or one is infinite or no number.
    """
    if values.size == 0:
        raise EvaluationError("an empty tensor has no scale")
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        raise EvaluationError(f"{count} of {values.size} values are infinite or not a number")


def _nearest(values: Single, scale: Single, word: NumberFormat) -> Single:
    """Values over scale, at the format's nearest numbers; no zero has a sign."""
    check_values(values)
    top = np.float32(largest(word))
    quotients = np.clip(values / scale, -top, top)
    if word.kind == "int":
        return np.rint(quotients) + np.float32(0)
    return quotients.astype(_dtype(word)).astype(np.float32) + np.float32(0)


def _restored(quotients: NDArray[np.generic], scale: Single) -> Single:
    """Quotients times scale; the last rounding of a huge scale must not make infinity of it."""
    top = np.finfo(np.float32).max
    wide = quotients.astype(np.float32).astype(np.float64) * scale
    return np.clip(wide, -top, top).astype(np.float32)


def _dtype(word: NumberFormat) -> np.dtype[np.generic]:
    if hasattr(ml_dtypes, word.dtype):
        return np.dtype(getattr(ml_dtypes, word.dtype))
    return np.dtype(word.dtype)


def _mask(word: NumberFormat) -> np.uint32:
    return np.uint32(2**word.bits - 1)
