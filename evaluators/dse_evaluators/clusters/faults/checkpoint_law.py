"""Time of work saved at intervals, and lost back to the last save when a device fails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw

from dse.core.values import Floats

_HIGHEST_EXPONENT = 300.0

_MOST_SKEWED = 2.0
"""Beyond that of an exponential three moments no longer tell of quantiles."""

_BRANCH = (
    1.0,
    -1.0 / 3.0,
    1.0 / 36.0,
    1.0 / 270.0,
    1.0 / 4320.0,
    -1.0 / 17010.0,
    -139.0 / 5443200.0,
)
"""Of 1 + W(-exp(-1 - x)) in powers of sqrt(2 x)."""

_NEAR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Work between two checkpoints, under failures at random; every field is (n,), in seconds."""

    work_s: Floats
    write_s: Floats
    """In which no work is done after each ``work_s``."""
    redone_s: Floats
    """What a failure costs before the segment's own work begins again."""
    mtbf_s: Floats
    """The mean time between failures of the whole job."""

    @property
    def length_s(self) -> Floats:
        return self.work_s + self.write_s

    @property
    def hopeless(self) -> Floats:
        """The exponent of the expected time, where it is too large for a number; else 0."""
        exponent = 2.0 * (self.length_s + self.redone_s) / self.mtbf_s
        return np.where(exponent > _HIGHEST_EXPONENT, exponent, 0.0)

    def mean_s(self) -> Floats:
        """The exact expected time, failures while something is redone included.

        Source:
            Daly: A higher order estimate of the optimum checkpoint interval for restart dumps,
            2006, equation 20: M exp(R / M) (exp((tau + C) / M) - 1).
        """
        once, redone = self._exponents()
        return np.asarray(self.mtbf_s * np.exp(redone) * np.expm1(once), dtype=np.float64)

    def variance_s2(self) -> Floats:
        """The exact variance of the time.

        The first try ends at its length or at a failure; after one, the time until redone and own
        work pass without a failure has the variance of a run of that length.

        Source:
            Feller: An Introduction to Probability Theory, volume 2, XIV.2 (waiting for a gap of b
            in a Poisson stream): mean (exp(b) - 1), variance exp(2 b) - 2 b exp(b) - 1.
        """
        once, redone = self._exponents()
        both = once + redone
        fails = -np.expm1(-once)
        # All in units of the mean time between failures.
        try_mean = 1.0 - np.exp(-once) * (1.0 + once)  # of a try that fails, times its chance
        try_square = 2.0 - np.exp(-once) * (2.0 + 2.0 * once + once**2)
        again = np.expm1(both)
        again_square = np.exp(2.0 * both) - 2.0 * both * np.exp(both) - 1.0 + again**2
        square = try_square + 2.0 * try_mean * again + fails * again_square
        square += once**2 * np.exp(-once)
        mean = np.exp(redone) * np.expm1(once)
        return np.asarray(self.mtbf_s**2 * np.maximum(square - mean**2, 0.0), dtype=np.float64)

    def third_s3(self, failures: Floats) -> Floats:
        """The third central moment of so many failures' cost, if they come evenly in a segment."""
        until = self.length_s + self.redone_s
        cube = (until**4 - self.redone_s**4) / (4.0 * self.length_s)
        return np.asarray(failures * cube, dtype=np.float64)

    def _exponents(self) -> tuple[Floats, Floats]:
        """The lengths in units of the mean time between failures; where hopeless, anything."""
        fine = self.hopeless == 0.0
        once = np.where(fine, self.length_s / self.mtbf_s, 1.0)
        return once, np.where(fine, self.redone_s / self.mtbf_s, 0.0)


def quantile(mean: Floats, variance: Floats, third: Floats, score: float) -> Floats:
    """The quantile at a normal score, by the first three moments.

    Source:
        Cornish, Fisher: Moments and Cumulants in the Specification of Distributions, 1938.
    """
    deviation = np.sqrt(variance)
    safe = np.where(deviation > 0.0, deviation, 1.0)
    skewness = np.minimum(third / safe**3, _MOST_SKEWED)
    return np.asarray(mean + deviation * (score + skewness * (score**2 - 1.0) / 6.0))


def best_interval(write_s: Floats, mtbf_s: Floats) -> Floats:
    """The work between checkpoints for the least expected time: exact, for any C and M.

    The derivative of Daly's expected time is nought where (1 - x) exp(x) = exp(-C / M) and
    x = tau / M, which Lambert's function solves.
    """
    ratio = write_s / mtbf_s
    exact = 1.0 + lambertw(-np.exp(-1.0 - ratio)).real
    # Next to its branch point Lambert's function loses digits, and its series there does not.
    root = np.sqrt(2.0 * ratio)
    series = root * sum(factor * root**power for power, factor in enumerate(_BRANCH))
    return np.asarray(mtbf_s * np.where(root < _NEAR, series, exact), dtype=np.float64)


def young_interval(write_s: Floats, mtbf_s: Floats) -> Floats:
    """Young's interval: Young, A first order approximation to the optimum interval, 1974."""
    return np.asarray(np.sqrt(2.0 * write_s * mtbf_s), dtype=np.float64)


def daly_interval(write_s: Floats, mtbf_s: Floats) -> Floats:
    """Daly's interval: Daly 2006, equation 37; the mean time to failure where C >= 2 M."""
    ratio = write_s / (2.0 * mtbf_s)
    series = np.sqrt(2.0 * write_s * mtbf_s) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - write_s
    return np.where(ratio < 1.0, series, mtbf_s)
