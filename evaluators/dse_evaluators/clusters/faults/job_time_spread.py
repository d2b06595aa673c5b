"""Time distribution of a job of many steps whose device lateness is correlated over steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.faults.step_time_spread import SCORES, Lateness, Ranks, moments

_PARTS = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSteps:
    """Number of steps of n jobs, and the correlation between steps; every field is (n,)."""

    count: Floats
    persistence: Floats
    """Correlation of a device's lateness between two steps: 0 independent, 1 constant."""


def lasting_share(ranks: Ranks, persistence: Floats) -> Floats:
    """Return the correlation between the lateness of any two steps of a job, (n,).

    By Plackett's identity, the covariance of the maxima of N normals in two draws of correlation r
    grows with r at a rate equal to the probability that both have the same latest rank, which
    scales as N ** (-(1 - r) / (1 + r)). With one rank the result is the persistence.

    Source:
        Plackett: A Reduction Formula for Normal Multivariate Integrals, 1954; Berman: Limit
        Theorems for the Maximum Term in Stationary Sequences, 1964.
    """
    part = np.linspace(0.0, 1.0, _PARTS)
    till = persistence[:, None] * part  # (n, parts)
    return persistence * _same(ranks.count, till) / _same(ranks.count, np.ones(1)[:, None] * part)


def compute_job_quantiles(
    late: Lateness, busy_s: Floats, steps: JobSteps, share: Floats, normal_s: Floats
) -> Floats:
    """Return the quantiles of a job's lateness, (n, scores), in seconds.

    Means and variances are exact. The shape is a weighted mean of that of one step and a normal
    distribution, with a weight from the third moment: fully correlated steps keep the shape of one
    step, independent steps approach a normal distribution.

    Args:
        late: lateness of a step, in standard deviations of a device's time for a microbatch.
        busy_s: seconds of one such standard deviation, (n,).
        steps: number of steps, and the correlation between them.
        share: correlation of the lateness of two steps, (n,).
        normal_s: standard deviation [s] of a step's other, normal time, (n,).
    """
    count = steps.count
    pairs = count * (count - 1.0)
    step_s = late.deviation * busy_s
    waited = step_s**2 * (count + pairs * share)
    others = normal_s**2 * (count + pairs * steps.persistence)
    deviation = np.sqrt(waited + others)
    triples = pairs * (count - 2.0)
    third = count + 3.0 * pairs * share + triples * share**1.5
    safe = np.where(deviation > 0.0, deviation, 1.0)
    keeps = np.minimum(third * (step_s / safe) ** 3, 1.0)[:, None]
    mixed = keeps * late.shape + (1.0 - keeps) * SCORES
    _, scale = moments(mixed)
    centre = (count * busy_s * late.mean)[:, None]
    return np.asarray(centre + (deviation / scale)[:, None] * mixed, dtype=np.float64)


def _same(count: Floats, correlation: Floats) -> Floats:
    """Return the probability that two draws have the same latest rank, (n,).

    It is averaged over the correlations.
    """
    chance = count[:, None] ** (-(1.0 - correlation) / (1.0 + correlation))
    ends = (chance[:, 0] + chance[:, -1]) / 2.0
    return np.asarray((chance.sum(axis=1) - ends) / (_PARTS - 1), dtype=np.float64)
