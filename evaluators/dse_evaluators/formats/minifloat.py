"""Grid of floats with any exponent, mantissa and bias, with subnormals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse_evaluators.formats.arrays import EXPONENT, MAGNITUDE, SIGN, Bits, Single, Words
from dse_evaluators.formats.rounding import climb

Specials = Literal["ieee", "nan", "none", "nuz"]
Overflow = Literal["sat", "ieee"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Minifloat:
    """Float format with a sign bit, ``exponent`` bits and ``mantissa`` bits.

    ``specials`` are infinities and NaNs at the largest exponent (``ieee``), NaN only where all bits
    are ones (``nan``), NaN in place of negative zero (``nuz``), or ``none``. Values beyond the
    largest number saturate (``sat``), or become the infinity or NaN of ``specials`` (``ieee``).

    Source:
        IEEE 754-2019, section 3.4; OCP 8-bit Floating Point Specification 1.0, section 5; OCP
        Microscaling Formats 1.0, section 5.3; Noune et al., 8-bit Numerical Formats for Deep
        Neural Networks, 2022 (``nuz``).
    """

    exponent: int
    mantissa: int
    bias: int
    specials: Specials
    overflow: Overflow = "sat"

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def has_nan(self) -> bool:
        return self.specials != "none"

    @property
    def top_code(self) -> int:
        """Code of the largest finite number of the format."""
        ones = 2 ** (self.exponent + self.mantissa) - 1
        if self.specials == "ieee":
            return int(ones - 2**self.mantissa)
        return int(ones - (self.specials == "nan"))

    @property
    def top(self) -> float:
        return self._magnitude(self.top_code)

    @property
    def smallest_normal(self) -> float:
        """Smallest positive normal number of the format."""
        return float(2.0 ** (1 - self.bias))

    @property
    def top_exponent(self) -> int:
        """Base-2 exponent of the largest finite number."""
        return int(np.frexp(self.top)[1]) - 1

    @property
    def is_wide(self) -> bool:
        """Whether the exponent has float32's 8 bits, so that rounding can work on bits."""
        return self.exponent == 8

    def snap(self, values: Single, chance: Single | None) -> None:
        bits = values.view(np.int32)
        sign = bits & SIGN
        self.near(values, chance)
        bits |= sign  # adding loses the sign of zero
        if self.specials == "nuz":
            values += np.float32(0)

    def near(self, values: Single, chance: Single | None) -> None:
        """Round values in place as :meth:`snap` does, but without preserving signs.

        The sign of zero is lost, and with stochastic rounding the signs of all values.
        """
        bits = values.view(np.int32)
        self._limit(values)
        special = ~np.isfinite(values) if self.is_wide else None
        kept = None if special is None else values[special]
        if chance is not None:
            with np.errstate(invalid="ignore", over="ignore"):  # special values, restored below
                self._climb(values, chance)
        elif self.is_wide:
            self._cut(bits)
        else:
            self._round(values, bits)
        if self.overflow == "ieee":
            self._overflow(values)
        if special is not None:
            values[special] = kept

    def codes(self, snapped: Single) -> Words:
        bits = snapped.view(np.int32)
        magnitude = np.abs(snapped)
        normal = ((bits & MAGNITUDE) >> np.int32(23 - self.mantissa)) - np.int32(
            (127 - self.bias) << self.mantissa
        )
        per_unit = 2.0 ** (self.bias - 1 + self.mantissa)
        is_small = magnitude < self.smallest_normal
        small = np.where(is_small, magnitude, 0).astype(np.float64) * per_unit
        codes = np.where(is_small, small.astype(np.int32), normal)
        codes |= (bits < 0).astype(np.int32) << np.int32(self.bits - 1)
        self._mark(codes, snapped)
        return codes.view(np.uint32)

    def values(self, codes: Words) -> Single:
        sign = np.uint32(1 << (self.bits - 1))
        magnitude = codes & (sign - np.uint32(1))
        field = (magnitude >> np.uint32(self.mantissa)).astype(np.int32)
        fraction = (magnitude & np.uint32(2**self.mantissa - 1)).astype(np.float64)
        fraction += (field > 0) * 2.0**self.mantissa
        with np.errstate(over="ignore"):
            found = np.ldexp(fraction, np.maximum(field, 1) - self.bias - self.mantissa)
            values = np.where(codes & sign, -found, found).astype(np.float32)
        if self.specials == "nuz":
            values[codes == sign] = np.nan
        beyond = magnitude > self.top_code
        values[beyond] = np.nan
        if self.specials == "ieee":
            infinite = magnitude == self.top_code + 1
            values[infinite] = np.where(codes[infinite] & sign, -np.inf, np.inf)
        return values

    def _magnitude(self, code: int) -> float:
        field, fraction = divmod(code, 2**self.mantissa)
        whole = fraction + (2**self.mantissa if field else 0)
        return float(whole * 2.0 ** (max(field, 1) - self.bias - self.mantissa))

    def _limit(self, values: Single) -> None:
        """Clip values to the largest finite number or, if they may overflow, to a larger bound."""
        if self.overflow == "sat":
            bound = np.float32(self.top)
        elif self.is_wide:
            return
        else:
            bound = np.float32(4.0 * 2.0**self.top_exponent)
        np.clip(values, -bound, bound, out=values)

    def _round(self, values: Single, bits: Bits) -> None:
        """Round in place, ties to even: adding 1.5 * 2^23 steps drops the fraction of a step.

        A step is the distance of neighbouring numbers at the value's exponent.
        """
        step = bits & EXPONENT
        least = np.float32(self.smallest_normal).view(np.int32)
        np.clip(step, least, EXPONENT, out=step)
        shift = step.view(np.float32)
        shift *= np.float32(1.5 * 2.0 ** (23 - self.mantissa))
        values += shift
        values -= shift

    def _cut(self, bits: Bits) -> None:
        """Round in place to the mantissa's bits, ties to even, by integer addition on the bits."""
        lost = 23 - self.mantissa
        if lost:
            odd = (bits >> np.int32(lost)) & np.int32(1)
            odd += np.int32(2 ** (lost - 1) - 1)
            bits += odd
            bits &= np.int32(-(2**lost))

    def _climb(self, values: Single, chance: Single) -> None:
        """Round magnitudes in place, stochastically, to a neighbouring number; signs are lost."""
        step = np.maximum(
            values.view(np.int32) & EXPONENT, np.float32(self.smallest_normal).view(np.int32)
        ).view(np.float32) * np.float32(2.0**-self.mantissa)
        np.abs(values, out=values)
        values /= step
        climb(values, chance)
        values *= step

    def _overflow(self, values: Single) -> None:
        """Replace values beyond the largest finite number by infinity, or else by NaN."""
        beyond = np.abs(values) > np.float32(self.top)
        if beyond.any():
            values[beyond] = np.inf if self.specials == "ieee" else np.nan

    def _mark(self, codes: Bits, snapped: Single) -> None:
        """Write the codes of infinities and NaNs into ``codes``."""
        special = ~np.isfinite(snapped)
        if not special.any():
            return
        unknown = np.isnan(snapped)
        words, sign = codes.view(np.uint32), np.uint32(1 << (self.bits - 1))
        if self.specials == "ieee":
            infinite = special & ~unknown
            words[infinite] = (words[infinite] & sign) | np.uint32(self.top_code + 1)
        words[unknown] = sign if self.specials == "nuz" else sign - np.uint32(1)
