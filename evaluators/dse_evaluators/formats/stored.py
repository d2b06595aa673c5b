"""Float formats in which scales are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.minifloat import Minifloat

# Lower bound applied to scales before they are inverted, so that the inverse stays finite.
_LEAST = np.float32(1e-38)

SMALLEST_NORMAL = np.float32(2.0**-126)
"""Smallest positive normal float32: the least scale of integers with ``full-range``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Storage format of scales, in ``bits`` bits; float32 without a ``grid``."""

    bits: int
    grid: Minifloat | None = None

    def words(self, scales: Single) -> Words:
        """Return the codes of the rounded scales; positive ones stay positive and finite."""
        if self.grid is None:
            return scales.view(np.uint32)
        near = scales.copy()
        self.grid.snap(near, None)
        least = self.grid.values(np.ones(1, dtype=np.uint32))[0]
        near[(near == 0) & (scales > 0)] = least
        return self.grid.codes(near)

    def scales(self, words: Words) -> Single:
        """Return the scales that stored codes represent, in float32."""
        return words.view(np.float32) if self.grid is None else self.grid.values(words)


STORED: Mapping[str, Stored] = {
    "fp16": Stored(bits=16, grid=Minifloat(exponent=5, mantissa=10, bias=15, specials="ieee")),
    "bf16": Stored(bits=16, grid=Minifloat(exponent=8, mantissa=7, bias=127, specials="ieee")),
    "fp32": Stored(bits=32),
}


def inverse(scales: Single) -> Single:
    """Return the reciprocal of each scale; scales below 1e-38 count as 1e-38, to stay finite."""
    return np.divide(np.float32(1), np.maximum(scales, _LEAST), dtype=np.float32)
