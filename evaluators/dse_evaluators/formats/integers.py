"""Value grid of integers or fixed-point numbers in two's complement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.rounding import climb


@dataclass(frozen=True, slots=True, kw_only=True)
class Integers:
    """Grid of integers or fixed-point numbers: ``low * unit`` to ``high * unit``, step ``unit``.

    The step is a power of two.
    """

    bits: int
    low: int
    high: int
    unit: float = 1.0
    has_nan: bool = False

    @property
    def top(self) -> float:
        return self.high * self.unit

    def snap(self, values: Single, chance: Single | None) -> None:
        low, high = np.float32(self.low * self.unit), np.float32(self.top)
        np.clip(values, low, high, out=values)
        if self.unit != 1:
            values *= np.float32(1 / self.unit)
        if chance is None:
            np.rint(values, out=values)
        else:
            climb(values, chance)
        # Two's complement has one zero; multiplying by a unit would not remove the sign of -0.
        values += np.float32(0)
        if self.unit != 1:
            values *= np.float32(self.unit)

    def codes(self, snapped: Single) -> Words:
        whole = (snapped * np.float32(1 / self.unit)).astype(np.int32)
        return whole.view(np.uint32) & np.uint32(2**self.bits - 1)

    def values(self, codes: Words) -> Single:
        sign = 1 << (self.bits - 1)
        whole = (codes ^ np.uint32(sign)).astype(np.int64) - sign
        return whole.astype(np.float32) * np.float32(self.unit)


def symmetric(bits: int, *, full: bool = False) -> Integers:
    """Return the grid of the integers up to 2^(bits - 1) - 1 in magnitude.

    With ``full`` it includes -2^(bits - 1), two's complement's extra negative number.
    """
    high = 2 ** (bits - 1) - 1
    return Integers(bits=bits, low=-high - full, high=high)
