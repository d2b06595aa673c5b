"""Vectorized search: the number of thresholds below each value of an array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single

Places = NDArray[np.intp]

_BUCKETS = 1 << 16
_MOST = 4  # thresholds in a bucket; beyond, a binary search is faster


@dataclass(frozen=True, slots=True)
class QuantizationSteps:
    """Ascending thresholds, indexed by the upper 16 bits of a float32.

    Floats with the same upper bits form an interval, so they share the count of thresholds below
    the interval; only the few thresholds within it remain to be compared. The result equals that of
    a binary search and is several times faster.
    """

    thresholds: Single  # (t,), ascending
    base: NDArray[np.uint8]  # (65536,), thresholds below each interval; empty: binary search
    within: Single  # (m, 65536), thresholds in each interval, padded with infinity

    @staticmethod
    def of(thresholds: Single) -> QuantizationSteps:
        """Build the index of these ascending thresholds by the upper bits of a float32."""
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
