"""Representable numbers of AdaptivFloat before scaling: no subnormals, largest exponent 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import EXPONENT, MAGNITUDE, SIGN, Single, Words
from dse_evaluators.formats.rounding import climb


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Numbers of AdaptivFloat before scaling: zero, and normal floats with exponents up to 0.

    ``reference`` selects the behaviour of the authors' published code: two exponents fewer, and
    values below its smallest number are truncated to zero instead of rounded.

    Source:
        Tambe et al., Algorithm-Hardware Co-Design of Adaptive Floating-Point Encodings for
        Resilient Deep Learning Inference, 2020, algorithm 1.
    """

    exponent: int
    mantissa: int
    reference: bool = False
    has_nan: bool = False

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def top(self) -> float:
        return float(2 - 2.0**-self.mantissa)

    @property
    def lowest(self) -> int:
        """Exponent that code 0 would have if it did not represent zero."""
        return 1 - 2**self.exponent

    @property
    def smallest(self) -> float:
        """Smallest positive number of the format."""
        if self.reference:
            return float(2.0 ** (self.lowest + 2))
        return float(2.0**self.lowest * (1 + 2.0**-self.mantissa))

    def snap(self, values: Single, chance: Single | None) -> None:
        bits = values.view(np.int32)
        sign = bits & SIGN
        bits &= MAGNITUDE
        least = np.float32(self.smallest)
        if chance is not None and not self.reference:
            keeps = (values >= chance * least) & (bits > 0)
        else:
            keeps = values >= (least if self.reference else least / 2)
        np.clip(values, least, np.float32(self.top), out=values)
        step = (bits & EXPONENT).view(np.float32)
        if chance is None:
            step *= np.float32(1.5 * 2.0 ** (23 - self.mantissa))
            values += step
            values -= step
        else:
            step *= np.float32(2.0**-self.mantissa)
            values /= step
            climb(values, chance)
            values *= step
        bits *= keeps
        bits |= sign * keeps

    def codes(self, snapped: Single) -> Words:
        bits = snapped.view(np.int32)
        magnitude = (bits & MAGNITUDE) >> np.int32(23 - self.mantissa)
        code = magnitude - np.int32((127 + self.lowest) << self.mantissa)
        negative = (bits < 0).astype(np.int32) << np.int32(self.bits - 1)
        return np.where(snapped == 0, 0, code | negative).astype(np.uint32)

    def values(self, codes: Words) -> Single:
        sign = np.uint32(1 << (self.bits - 1))
        magnitude = codes & (sign - np.uint32(1))
        field = (magnitude >> np.uint32(self.mantissa)).astype(np.int32)
        fraction = (magnitude & np.uint32(2**self.mantissa - 1)) + 2.0**self.mantissa
        found = np.ldexp(fraction, field + self.lowest - self.mantissa)
        signed = np.where(codes & sign, -found, found)
        return np.where(magnitude == 0, 0, signed).astype(np.float32)
