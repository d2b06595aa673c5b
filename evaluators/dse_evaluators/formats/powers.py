"""Logarithmic grid: zero and powers of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse_evaluators.formats.arrays import EXPONENT, MAGNITUDE, SIGN, Single, Words

Nearest = Literal["log", "value"]
NEAREST: tuple[Nearest, ...] = ("log", "value")

_ONE = np.float32(1).view(np.int32)
# Addend to a float's bits that increments the exponent for mantissas above the square root of two
# (``log``; it is not a float32) or from 1.5 (``value``).
_CARRY = {"log": np.int32(0x800000 - 0x3504F4), "value": np.int32(0x800000 - 0x400000)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Powers:
    """Grid of zero and +-1, +-1/2, +-1/4 ...; values round to the nearest logarithm or value.

    A value becomes zero if it would round to less than the smallest power (by logarithm), or is
    less than half of that power (by value). Ties round up in magnitude.

    Source:
        Miyashita et al., Convolutional Neural Networks using Logarithmic Data Representation,
        2016, section 3; Zhou et al., Incremental Network Quantization, 2017, eq. 1-4 (by value).
    """

    bits: int
    nearest: Nearest = "log"
    has_nan: bool = False
    top: float = 1.0

    @property
    def lowest(self) -> int:
        """Exponent of the smallest positive power of two on the grid."""
        return 2 - 2 ** (self.bits - 1)

    def snap(self, values: Single, chance: Single | None) -> None:
        bits = values.view(np.int32)
        sign = bits & SIGN
        bits &= MAGNITUDE
        np.clip(bits, np.int32(0), _ONE, out=bits)
        least = np.float32(2.0**self.lowest).view(np.int32)
        if chance is None:
            keeps = bits >= self._threshold(least)
            bits += _CARRY[self.nearest]
        else:
            keeps = values >= chance * np.float32(2.0**self.lowest)
            keeps &= bits > 0
            bits += (chance * np.float32(2.0**23)).astype(np.int32)
        bits &= EXPONENT
        np.clip(bits, least, _ONE, out=bits)
        bits *= keeps
        bits |= sign * keeps

    def codes(self, snapped: Single) -> Words:
        bits = snapped.view(np.int32)
        place = 1 + 127 - ((bits & EXPONENT) >> np.int32(23))
        negative = (bits < 0).astype(np.int32) << np.int32(self.bits - 1)
        return np.where(snapped == 0, 0, place | negative).astype(np.uint32)

    def values(self, codes: Words) -> Single:
        sign = np.uint32(1 << (self.bits - 1))
        place = (codes & (sign - np.uint32(1))).astype(np.int32)
        powers = np.ldexp(np.float32(1), 1 - place)
        signed = np.where(codes & sign, -powers, powers)
        return np.where(place == 0, 0, signed).astype(np.float32)

    def _threshold(self, least: np.int32) -> np.int32:
        """Return the float32 bits of the smallest magnitude that does not round to zero."""
        one_less = least - np.int32(0x800000)
        return one_less + np.int32(0x3504F4) if self.nearest == "log" else one_less
