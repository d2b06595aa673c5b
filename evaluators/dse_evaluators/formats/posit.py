"""Posits: floats with a variable-length regime that gives more precision near one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dse_evaluators.formats.arrays import MAGNITUDE, SIGN, Single, Words
from dse_evaluators.formats.tables import CodeTable

_SHORT = 8  # width up to which rounding uses one table of all numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Posit:
    """Posit grid of ``bits`` bits with at most ``scale_bits`` exponent bits.

    Rounding is on the bit string: the boundary of two codes is the posit between them that is one
    bit longer, and a value on it takes the even code. No nonzero number rounds to zero or to NaR
    (not a real), the code of infinities and NaN.

    Source:
        Gustafson and Yonemoto, Beating Floating Point at its Own Game, 2017, section 2;
        Standard for Posit Arithmetic, 2022, section 4.1.
    """

    bits: int
    scale_bits: int
    has_nan: bool = True

    @property
    def top(self) -> float:
        return float(posit_values(self.bits, self.scale_bits)[-1])

    def snap(self, values: Single, chance: Single | None) -> None:
        unknown = ~np.isfinite(values)
        if unknown.any():
            values[unknown] = 0
            self.snap(values, chance)
            values[unknown] = np.nan
        elif chance is not None or self.bits <= _SHORT:
            _all(self.bits, self.scale_bits).snap(values, chance)
        else:
            self._taper(values.ravel(order="K"))

    def codes(self, snapped: Single) -> Words:
        magnitudes = posit_values(self.bits, self.scale_bits)
        place = np.searchsorted(magnitudes, np.abs(snapped)).astype(np.int64)
        signed = np.where(snapped < 0, 2**self.bits - place, place)
        return np.where(np.isnan(snapped), 2 ** (self.bits - 1), signed).astype(np.uint32)

    def values(self, codes: Words) -> Single:
        magnitudes = posit_values(self.bits, self.scale_bits)
        half = 2 ** (self.bits - 1)
        place = codes.astype(np.int64)
        found = magnitudes[np.where(place > half, 2 * half - place, place) % half]
        signed = np.where(place > half, -found, found)
        return np.where(place == half, np.nan, signed).astype(np.float32)

    def _taper(
        self,
        values: Single,  # (n,)
    ) -> None:
        """Round in place: by float addition where posits have fraction bits, else by table."""
        taper = _build_taper(self.bits, self.scale_bits)
        bits = values.view(np.int32)
        magnitude = bits & MAGNITUDE
        sign = bits & SIGN
        # Unsigned subtraction wraps zero around to the largest word, so zero counts as inside.
        low, high = (np.float32(end).view(np.uint32) for end in taper.inside)
        word = magnitude.view(np.uint32)
        outside = np.flatnonzero((word - np.uint32(1) < low - np.uint32(1)) | (word >= high))
        edges = values[outside]
        shift = np.take(taper.shifts, magnitude >> np.int32(23), mode="clip")
        values += shift
        values -= shift
        bits |= sign
        values += np.float32(0)
        if len(outside):
            taper.edges.snap(edges, None)
            values[outside] = edges


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taper:
    """Data for rounding float32 values to posits.

    ``shifts`` are addends, by exponent, whose addition rounds a float to the posit's fraction bits;
    ``edges`` is the table of the very small and very large posits, which have no fraction bits.
    """

    shifts: Single  # (256,), by the exponent of a float
    inside: tuple[float, float]  # where there are fraction bits
    edges: CodeTable


@cache
def posit_values(
    bits: int,
    scale_bits: int,
) -> Single:  # (2^(bits - 1),)
    """Return all non-negative posits in the order of their codes, as float values."""
    codes = np.arange(1, 2 ** (bits - 1), dtype=np.int64)
    width = bits - 1
    ones = codes >> (width - 1) == 1
    flipped = np.where(ones, ~codes & (2**width - 1), codes)
    run = width - np.frexp(flipped.astype(np.float64))[1]  # equal bits that a code starts with
    regime = np.where(ones, run - 1, -run)
    rest = np.maximum(width - run - 1, 0)  # bits after the regime and its terminating bit
    tail = codes & ((np.int64(1) << rest) - 1)
    missing = np.maximum(scale_bits - rest, 0)
    fraction_bits = np.maximum(rest - scale_bits, 0)
    exponent = (tail >> fraction_bits) << missing
    fraction = tail & ((np.int64(1) << fraction_bits) - 1)
    power = regime * 2**scale_bits + exponent
    magnitudes = np.ldexp(1 + fraction / 2.0**fraction_bits, power)
    return np.append(0, magnitudes).astype(np.float32)


@cache
def _all(bits: int, scale_bits: int) -> CodeTable:
    """Return the code table of all posits of ``bits`` bits, positive and negative."""
    magnitudes = posit_values(bits, scale_bits)
    return _mirror_table(magnitudes, _boundaries(bits, scale_bits), bits)


def _boundaries(bits: int, scale_bits: int) -> tuple[Single, Single]:
    """Return the rounding thresholds above each posit, for positive and for negative numbers.

    A value above threshold p of the first array rounds to posit p + 1 or a larger one; a value
    above minus threshold p of the second array rounds to minus posit p or towards zero.
    """
    between = posit_values(bits + 1, scale_bits)[1::2]  # between codes p and p + 1
    odd = np.arange(len(between) - 1) % 2 == 1
    up = np.where(odd, np.nextafter(between[:-1], np.float32(0)), between[:-1])
    down = np.where(odd, between[:-1], np.nextafter(between[:-1], np.float32(np.inf)))
    up[0], down[0] = 0, np.nextafter(np.float32(0), np.float32(1), dtype=np.float32)
    return up.astype(np.float32), down.astype(np.float32)


def _mirror_table(magnitudes: Single, bounds: tuple[Single, Single], bits: int) -> CodeTable:
    """Return the code table of the magnitudes and their negatives, with these thresholds."""
    up, down = bounds
    numbers = np.concatenate([-magnitudes[:0:-1], magnitudes])
    return CodeTable.of(numbers, bits, thresholds=np.concatenate([-down[::-1], up]))


@cache
def _build_taper(bits: int, scale_bits: int) -> _Taper:
    """Return the rounding addend of each float32 exponent, and the posits without fraction bits."""
    exponent = np.arange(256) - 127
    regime = exponent >> scale_bits
    length = np.where(regime >= 0, regime + 2, 1 - regime)
    fraction_bits = bits - 1 - length - scale_bits
    inside = exponent[fraction_bits >= 1]
    ends = float(2.0 ** inside[0]), float(2.0 ** (inside[-1] + 1))
    shifts = np.where(fraction_bits >= 1, 1.5 * 2.0 ** (23 + exponent - fraction_bits), 0)
    magnitudes = posit_values(bits, scale_bits)
    up, down = _boundaries(bits, scale_bits)
    few = (magnitudes <= ends[0]) | (magnitudes >= ends[1])
    few_up, few_down = up[few[1:]], down[few[1:]]
    return _Taper(
        shifts=shifts.astype(np.float32),
        inside=ends,
        edges=_mirror_table(magnitudes[few], (few_up, few_down), bits),
    )
