"""Confidence intervals of shares, and of weighted sums of independent shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Z = 1.959963984540054
"""Quantile of the standard normal distribution for two-sided 95 % intervals."""


class Proportion(NamedTuple):
    """Estimate with the ends of its 95 % interval, and its standard error."""

    value: float
    low: float
    high: float
    stderr: float

    def scaled(self, factor: float) -> Proportion:
        """Return the estimate of a multiple."""
        return Proportion(*(factor * one for one in self))


def wilson(count: int, trials: int) -> Proportion:
    """Return the share of events among independent trials, with its score interval.

    Args:
        count: number of events.
        trials: number of trials, at least 1.

    Source:
        Wilson: Probable Inference, the Law of Succession, and Statistical Inference, 1927; the
        standard error is that of a share.
    """
    share = count / trials
    middle = (count + Z**2 / 2) / (trials + Z**2)
    half = Z / (trials + Z**2) * math.sqrt(count * (trials - count) / trials + Z**2 / 4)
    stderr = math.sqrt(share * (1 - share) / trials)
    return Proportion(share, max(min(middle - half, share), 0.0), max(middle + half, share), stderr)


def sum_proportions(parts: Sequence[Proportion]) -> Proportion:
    """Return the sum of independent estimates, with an interval from theirs.

    Args:
        parts: the terms, at least one.

    Source:
        Zou, Donner: Construction of Confidence Limits about Effect Measures, 2008, eq. 3 (method
        of variance estimates recovery).
    """
    value = sum(one.value for one in parts)
    down = math.sqrt(sum((one.value - one.low) ** 2 for one in parts))
    up = math.sqrt(sum((one.high - one.value) ** 2 for one in parts))
    stderr = math.sqrt(sum(one.stderr**2 for one in parts))
    return Proportion(value, max(value - down, 0.0), value + up, stderr)
