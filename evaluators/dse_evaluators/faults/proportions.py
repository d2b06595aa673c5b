"""Confidence intervals of shares, and of weighted sums of independent shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from dse.core.values import Floats, Ints

Z = 1.959963984540054
"""Quantile of the standard normal distribution for two-sided 95 % intervals."""


class Proportion(NamedTuple):
    """Estimated proportion with its 95 % interval and its standard error."""

    value: float
    low: float
    high: float
    stderr: float

    def scaled(self, factor: float) -> Proportion:
        """Return the estimate and its interval, multiplied by a factor."""
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


def stratified_proportion(
    events: Ints, counts: Ints, sizes: Ints, shares: Floats, clusters: int | None = None
) -> Proportion:
    """Return the share of events in a population, from samples of its strata.

    The interval is that of Clopper and Pearson for the effective sample size: the number of
    independent trials with the estimate's variance. For this variance alone, half an event and half
    a non-event are added to each stratum: otherwise the share of a stratum without events would
    count as known. The estimate is unbiased if the numbers of trials do not depend on the events.

    Args:
        events: number of events in each stratum, (h,).
        counts: number of trials in each stratum, (h,), drawn without repetition, at least 1.
        sizes: number of members of each stratum, (h,); if all are drawn, its share is known.
        shares: share of each stratum in the population, (h,); the rest of the population has no
            events.
        clusters: number of random clusters from which the strata were sampled, or ``None``; the
            variance between clusters is bounded by the variance of a share.

    Source:
        Cochran: Sampling Techniques, 3rd edition, 1977, eq. 5.7; Korn, Graubard: Confidence
        Intervals for Proportions with Small Expected Number of Positive Counts Estimated from
        Survey Data, 1998 (effective sample size).
    """
    found = events / counts
    value = float(shares @ found)
    rest = shares**2 * (1 - counts / sizes) / counts
    stderr = math.sqrt(float(rest @ (found * (1 - found))))
    likely = np.where(counts < sizes, (events + 0.5) / (counts + 1), found)
    middle = float(shares @ likely)
    variance = float(rest @ (likely * (1 - likely)))
    if clusters is not None:
        variance += middle * (1 - middle) / clusters
    if variance <= 0:
        return Proportion(value, value, value, stderr)
    trials = middle * (1 - middle) / variance
    return Proportion(value, *_clopper_pearson(value * trials, trials), stderr)


def _clopper_pearson(events: float, trials: float) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share; numbers need not be whole."""
    low = betaincinv(events, trials - events + 1, 0.025) if events > 0 else 0.0
    high = betaincinv(events + 1, trials - events, 0.975) if events < trials else 1.0
    return float(low), float(high)


def sum_proportions(parts: Sequence[Proportion]) -> Proportion:
    """Return the sum of independent estimates, with an interval from their intervals.

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
