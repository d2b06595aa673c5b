"""Grids given by a table of numbers, such as NF4 and the dynamic tree data type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single, Words

Places = NDArray[np.intp]

_BUCKETS = 1 << 16

_MOST = 4  # thresholds in a bucket; beyond, a binary search is faster


@dataclass(frozen=True, slots=True)
class QuantizationSteps:
    """Index of ascending rounding thresholds, by the upper 16 bits of a float32.

    Floats with the same upper bits form an interval, so they share the count of thresholds below
    the interval; only the few thresholds within it remain to be compared. The result equals that of
    a binary search and is several times faster.
    """

    thresholds: Single  # (t,), ascending
    base: NDArray[np.uint8]  # (65536,), thresholds below each interval; empty: binary search
    within: Single  # (m, 65536), thresholds in each interval, padded with infinity

    @staticmethod
    def of(thresholds: Single) -> QuantizationSteps:
        """Build the index of ascending thresholds by the upper bits of a float32."""
        low, high = _bounds()
        before = np.searchsorted(thresholds, low, side="left")
        until = np.searchsorted(thresholds, high, side="right")
        most = int((until - before).max(initial=0))
        if most > _MOST or len(thresholds) > np.iinfo(np.uint8).max:
            empty = np.zeros(0, dtype=np.uint8), np.zeros((0, 0), dtype=np.float32)
            return QuantizationSteps(thresholds, *empty)
        padded = np.append(thresholds, np.full(most + 1, np.inf, dtype=np.float32))
        within = np.stack(
            [np.where(before + k < until, padded[before + k], np.inf) for k in range(most)]
            or [np.full(_BUCKETS, np.inf)]
        ).astype(np.float32)
        return QuantizationSteps(thresholds, before.astype(np.uint8), within)

    def below(self, values: Single) -> Places:
        """Return the number of thresholds less than each value; undefined for NaN."""
        if not len(self.base):
            return np.searchsorted(self.thresholds, values, side="left")
        bucket = (values.view(np.uint32) >> np.uint32(16)).astype(np.intp)
        count = np.take(self.base, bucket, mode="clip")
        for row in self.within:
            count += values > np.take(row, bucket, mode="clip")
        return count.astype(np.intp)


def _bounds() -> tuple[Single, Single]:
    """Return the least and the largest float32 for each value of the upper 16 bits.

    NaNs count as infinite.
    """
    halves = np.arange(_BUCKETS, dtype=np.uint32) << np.uint32(16)
    ends = halves.view(np.float32), (halves | np.uint32(0xFFFF)).view(np.float32)
    infinite = np.where(halves >> np.uint32(31), -np.inf, np.inf).astype(np.float32)
    near, far = (np.where(np.isnan(end), infinite, end) for end in ends)
    return np.minimum(near, far), np.maximum(near, far)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodeTable:
    """Table of ascending numbers and their codes, with the thresholds for rounding.

    A value above threshold i rounds to number i + 1 or a larger one.
    """

    bits: int
    numbers: Single  # (n,), ascending
    places: Words  # (n,), the code of each
    steps: QuantizationSteps  # (n - 1,) thresholds
    floors: QuantizationSteps  # (n - 1,), to find the largest number at or below a value
    has_nan: bool = False

    @staticmethod
    def of(
        numbers: Single,  # (n,), rising
        bits: int,
        *,
        thresholds: Single | None = None,
        places: Words | None = None,
    ) -> CodeTable:
        """Build the table of a grid; by default thresholds are midpoints, codes count from zero."""
        middles = numbers[1:] / np.float32(2) + numbers[:-1] / np.float32(2)
        below = np.nextafter(numbers[1:], np.float32(-np.inf))
        return CodeTable(
            bits=bits,
            numbers=numbers,
            places=np.arange(len(numbers), dtype=np.uint32) if places is None else places,
            steps=QuantizationSteps.of(middles if thresholds is None else thresholds),
            floors=QuantizationSteps.of(below),
        )

    @property
    def top(self) -> float:
        return float(np.abs(self.numbers).max())

    def snap(self, values: Single, chance: Single | None) -> None:
        flat = values.ravel(order="K")  # a view, also of a transposed array
        if chance is None:
            place = self.steps.below(flat)
        else:
            place = self.floors.below(flat)
            near = self.numbers[place]
            far = self.numbers[np.minimum(place + 1, len(self.numbers) - 1)]
            gap = np.where(far > near, far - near, np.float32(1))
            place += (far > near) & (chance.ravel(order="K") * gap < flat - near)
        np.take(self.numbers, place, out=flat, mode="clip")

    def codes(self, snapped: Single) -> Words:
        return self.places[np.searchsorted(self.numbers, snapped)]

    def values(self, codes: Words) -> Single:
        numbers = np.zeros(2**self.bits, dtype=np.float32)
        numbers[self.places] = self.numbers
        return numbers[codes]


# Dettmers et al., QLoRA, 2023, appendix E: quantiles of the normal distribution that are zero at
# one code and one at both ends.
_NF4 = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)


@cache
def normal_float() -> CodeTable:
    """Return the table of the 16 NF4 numbers, from -1 to 1."""
    return CodeTable.of(np.array(_NF4, dtype=np.float32), 4)


@cache
def dynamic_tree() -> CodeTable:
    """Return the table of the 256 numbers of the dynamic tree data type, from -1 to 1.

    Source:
        Dettmers, 8-Bit Approximations for Parallelism in Deep Learning, 2016, section 3: the
        leading zeros give a power of ten, the bits after them divide the interval [0.1, 1] evenly.
    """
    positive = []
    for zeros in range(7):
        ends = _tenths(2**zeros)
        middles = (ends[:-1] + ends[1:]) / np.float32(2)
        positive.append(np.float32(10.0 ** (zeros - 6)) * middles)
    magnitudes = np.concatenate(positive)
    numbers = np.concatenate([-magnitudes, [0.0, 1.0], magnitudes]).astype(np.float32)
    return CodeTable.of(np.sort(numbers), 8)


def _tenths(
    parts: int,
) -> Single:  # (parts + 1,)
    """Return ``parts`` + 1 evenly spaced numbers from 0.1 to 1, rounded once to float32.

    Each number is computed from the nearer end of the interval.
    """
    low, high = np.float32(0.1), np.float32(1)
    step = np.float64((high - low) / np.float32(parts))
    place = np.arange(parts + 1)
    from_low, from_high = low + step * place, high - step * (parts - place)
    return np.where(place < (parts + 1) // 2, from_low, from_high).astype(np.float32)
