"""Confidence interval and standard error of a median, from order statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

CONFIDENCE = 0.95
"""Least probability with which the interval covers the true median."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianInterval:
    """Median of samples with the ends of its confidence interval, in the samples' unit."""

    median: float
    low: float
    high: float

    @property
    def relative_half_width(self) -> float:
        """Larger distance from the median to an end of the interval, relative to the median."""
        reach = max(self.high - self.median, self.median - self.low)
        return reach / self.median if self.median else math.inf * reach if reach else 0.0

    def spanning(self, other: MedianInterval) -> MedianInterval:
        """Return the interval, widened to contain another interval; the median stays unchanged."""
        return MedianInterval(
            median=self.median, low=min(self.low, other.low), high=max(self.high, other.high)
        )


def interval_of_median(
    samples: Floats,  # (n,)
) -> MedianInterval:
    """Return the median of samples and its confidence interval, for any distribution.

    Samples must be independent. The ends are the k-th smallest and the k-th largest sample, for the
    largest k that keeps the coverage: the number of samples below the median is binomial with
    probability 1/2. With fewer than six samples no interval has this coverage (:data:`CONFIDENCE`);
    the ends are then infinite.

    Source:
        David, Nagaraja: Order Statistics, 3rd edition, 2003, section 7.1. Hoefler, Belli:
        Scientific Benchmarking of Parallel Computing Systems, 2015, section 3.1.3.
    """
    ordered = np.sort(samples)
    rank = _outer_rank(len(ordered))
    median = float(np.median(ordered))
    if not rank:
        return MedianInterval(median=median, low=-math.inf, high=math.inf)
    return MedianInterval(median=median, low=float(ordered[rank - 1]), high=float(ordered[-rank]))


def median_error(
    samples: Floats,  # (n,)
) -> float:
    """Return the standard error of the median, for samples of any distribution.

    The error is half the distance between the samples whose ranks are one standard error of the
    rank, sqrt(n) / 2, below and above the middle rank.

    Source:
        David, Nagaraja: Order Statistics, 3rd edition, 2003, chapter 7.
    """
    ordered = np.sort(samples)
    middle, step = (len(samples) - 1) / 2, math.sqrt(len(samples)) / 2
    low = max(math.floor(middle - step), 0)
    high = min(math.ceil(middle + step), len(samples) - 1)
    return float(ordered[high] - ordered[low]) / 2


def _outer_rank(size: int) -> int:
    """Return the largest k for which the k-th samples from both ends keep the confidence."""
    below, rank = 0.0, 0
    while rank < size // 2:
        below += math.exp(_log_binomial(size, rank) - size * math.log(2))
        if 2 * below > 1 - CONFIDENCE:
            break
        rank += 1
    return rank


def _log_binomial(size: int, rank: int) -> float:
    return math.lgamma(size + 1) - math.lgamma(rank + 1) - math.lgamma(size - rank + 1)
