"""Quantization of a weight tensor to codes of a number format, with scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.casting import check_values, needs_scale, scales, values_of, words_of
from dse_evaluators.formats.words import NumberFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """Quantized tensor: codes in the tensor's shape, where code 0 is the number zero.

    ``scale`` has one element, one per filter, or no element if the format needs no scale.
    """

    words: Words  # (filters, ...)
    scale: Single  # (0,), (1,) or (filters,)
    word: NumberFormat

    @property
    def values(self) -> Single:
        """Weights that the codes represent, (filters, ...)."""
        return values_of(self.words, _beside(self.scale, self.words.ndim), self.word)


def quantise_weights(
    weight: Single,  # (filters, ...)
    word: NumberFormat,
    granularity: str,
) -> Quantised:
    """Quantize weights, scaled so that the largest magnitude is the format's largest number.

    Raises:
        EvaluationError: there are no weights, or a weight is infinite or NaN.
    """
    check_values(weight)
    magnitudes = np.abs(weight).reshape(len(weight), -1).max(axis=1)
    peaks = magnitudes if granularity == "channel" else magnitudes.max(keepdims=True)
    scale = scales(peaks, word) if needs_scale(word) else np.zeros(0, dtype=np.float32)
    return Quantised(
        words=words_of(weight, _beside(scale, weight.ndim), word), scale=scale, word=word
    )


def _beside(scale: Single, rank: int) -> Single:
    """Return the scales reshaped to broadcast along the filters; 1 without scales."""
    if not len(scale):
        return np.ones(1, dtype=np.float32)
    return scale.reshape(-1, *(1,) * (rank - 1))
