"""Moments of a job's time with random failures: periodic checkpoints, or neighbour recovery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw

from dse.core.values import Floats

_HIGHEST_EXPONENT = 300.0

_MOST_SKEWED = 2.0
"""Largest skewness (an exponential's) at which three moments still approximate quantiles."""

_BRANCH = (
    1.0,
    -1.0 / 3.0,
    1.0 / 36.0,
    1.0 / 270.0,
    1.0 / 4320.0,
    -1.0 / 17010.0,
    -139.0 / 5443200.0,
)
"""Coefficients of the series of 1 + W(-exp(-1 - x)) in powers of sqrt(2 x)."""

_NEAR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Work between two checkpoints of n jobs under Poisson failures, in seconds, (n,)."""

    work_s: Floats
    write_s: Floats
    """Time without progress after each ``work_s``, to write a checkpoint."""
    redone_s: Floats
    """Cost of a failure before the segment's own work restarts."""
    mtbf_s: Floats
    """Mean time between failures of the job, over all its devices."""

    @property
    def length_s(self) -> Floats:
        return self.work_s + self.write_s

    @property
    def hopeless(self) -> Floats:
        """Exponent of the expected time where frequent failures make it overflow; else 0."""
        exponent = 2.0 * (self.length_s + self.redone_s) / self.mtbf_s
        return np.where(exponent > _HIGHEST_EXPONENT, exponent, 0.0)

    def mean_s(self) -> Floats:
        """Return the exact expected time to complete a segment, with failures during recovery.

        Source:
            Daly: A higher order estimate of the optimum checkpoint interval for restart dumps,
            2006, equation 20: M exp(R / M) (exp((tau + C) / M) - 1).
        """
        once, redone = self._exponents()
        return np.asarray(self.mtbf_s * np.exp(redone) * np.expm1(once), dtype=np.float64)

    def variance_s2(self) -> Floats:
        """Return the exact variance of the time to complete a segment.

        The first attempt ends at its length or at a failure. After a failure, the remaining time is
        the waiting time for a failure-free period of recovery plus the segment's length.

        Source:
            Feller: An Introduction to Probability Theory, volume 2, XIV.2 (waiting for a gap of b
            in a Poisson stream): mean (exp(b) - 1), variance exp(2 b) - 2 b exp(b) - 1.
        """
        once, redone = self._exponents()
        both = once + redone
        fails = -np.expm1(-once)
        # All in units of the mean time between failures.
        try_mean = 1.0 - np.exp(-once) * (1.0 + once)  # of a failed attempt, times its probability
        try_square = 2.0 - np.exp(-once) * (2.0 + 2.0 * once + once**2)
        again = np.expm1(both)
        again_square = np.exp(2.0 * both) - 2.0 * both * np.exp(both) - 1.0 + again**2
        square = try_square + 2.0 * try_mean * again + fails * again_square
        square += once**2 * np.exp(-once)
        mean = np.exp(redone) * np.expm1(once)
        return np.asarray(self.mtbf_s**2 * np.maximum(square - mean**2, 0.0), dtype=np.float64)

    def third_s3(self, failures: Floats) -> Floats:
        """Return the third central moment of the time lost to ``failures`` failures.

        Each failure occurs at a uniformly distributed time of a segment.
        """
        until = self.length_s + self.redone_s
        cube = (until**4 - self.redone_s**4) / (4.0 * self.length_s)
        return np.asarray(failures * cube, dtype=np.float64)

    def _exponents(self) -> tuple[Floats, Floats]:
        """Return ``length_s`` and ``redone_s`` over ``mtbf_s``; a constant where ``hopeless``."""
        fine = self.hopeless == 0.0
        once = np.where(fine, self.length_s / self.mtbf_s, 1.0)
        return once, np.where(fine, self.redone_s / self.mtbf_s, 0.0)


def quantile(mean: Floats, variance: Floats, third: Floats, score: float) -> Floats:
    """Return a quantile of a distribution from three moments, by the Cornish-Fisher expansion.

    ``score`` is that quantile of the standard normal distribution.

    Source:
        Cornish, Fisher: Moments and Cumulants in the Specification of Distributions, 1938.
    """
    deviation = np.sqrt(variance)
    safe = np.where(deviation > 0.0, deviation, 1.0)
    skewness = np.minimum(third / safe**3, _MOST_SKEWED)
    return np.asarray(mean + deviation * (score + skewness * (score**2 - 1.0) / 6.0))


def best_interval(write_s: Floats, mtbf_s: Floats) -> Floats:
    """Return the work between checkpoints that minimizes the expected time of a job, (n,).

    The result is in seconds, and exact for any checkpoint cost C and mean time between failures M:
    the derivative of Daly's expected time is zero at (1 - x) exp(x) = exp(-C / M), x = tau / M,
    which Lambert's function solves.
    """
    ratio = write_s / mtbf_s
    exact = 1.0 + lambertw(-np.exp(-1.0 - ratio)).real
    # Near its branch point Lambert's function loses digits, but its series there does not.
    root = np.sqrt(2.0 * ratio)
    series = root * sum(factor * root**power for power, factor in enumerate(_BRANCH))
    return np.asarray(mtbf_s * np.where(root < _NEAR, series, exact), dtype=np.float64)


def young_interval(write_s: Floats, mtbf_s: Floats) -> Floats:
    """Return Young's optimal work between checkpoints in seconds, ``sqrt(2 C M)``, (n,).

    C is the time to write a checkpoint, M the mean time between failures.

    Source:
        Young: A first order approximation to the optimum checkpoint interval, 1974.
    """
    return np.asarray(np.sqrt(2.0 * write_s * mtbf_s), dtype=np.float64)


def daly_interval(write_s: Floats, mtbf_s: Floats) -> Floats:
    """Return Daly's higher-order optimum of the work between checkpoints in seconds, (n,).

    The result is the mean time between failures M where writing a checkpoint takes C >= 2 M.

    Source:
        Daly 2006, equation 37.
    """
    ratio = write_s / (2.0 * mtbf_s)
    series = np.sqrt(2.0 * write_s * mtbf_s) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - write_s
    return np.where(ratio < 1.0, series, mtbf_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Recovery from neighbours without checkpoints: random failures of equal cost, in n jobs.

    Every field is (n,), in seconds. Work and recovery form one busy period of a queue: failures
    also occur during recovery.

    Source:
        Blagoev et al.: All is Not Lost: LLM Recovery without Checkpoints (CheckFree), 2025; the
        moments are those of a busy period with fixed services, Borel 1942 and Tanner 1953.
    """

    cost_s: Floats
    mtbf_s: Floats

    @property
    def busy(self) -> Floats:
        """Share of the time spent on recovery, (n,); at 1 or more a job makes no progress."""
        return self.cost_s / self.mtbf_s

    def mean_s(self, work_s: Floats) -> Floats:
        """Return the exact expected time of a job in seconds; valid where ``busy`` is below 1."""
        return np.asarray(work_s / self._idle(), dtype=np.float64)

    def variance_s2(self, work_s: Floats) -> Floats:
        """Return the exact variance of the time of a job, (n,), in s^2."""
        return np.asarray(work_s * self.busy * self.cost_s / self._idle() ** 3, dtype=np.float64)

    def third_s3(self, work_s: Floats) -> Floats:
        """Return the exact third central moment of the time of a job, (n,), in s^3."""
        cube = self.busy * self.cost_s**2 * (1.0 + 2.0 * self.busy)
        return np.asarray(work_s * cube / self._idle() ** 5, dtype=np.float64)

    def _idle(self) -> Floats:
        return np.where(self.busy < 1.0, 1.0 - self.busy, 1.0)


def break_even(saved: Segment, restart_s: Floats, iteration_s: Floats) -> Floats:
    """Return the lost iterations per failure at which both recovery methods are equally fast, (n,).

    The methods are recovery from neighbours and from checkpoints. A negative value means that
    checkpoints are faster even if a failure costs only a restart.
    """
    exponent = np.minimum((saved.length_s + saved.redone_s) / saved.mtbf_s, 600.0)
    whole = np.exp(exponent) * -np.expm1(-saved.length_s / saved.mtbf_s)
    useful = saved.work_s / saved.mtbf_s / whole
    affordable_s = (1.0 - useful) * saved.mtbf_s
    return np.asarray((affordable_s - restart_s) / iteration_s, dtype=np.float64)
