"""Time distribution of a job of many steps, where part of every device's lateness lasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.faults.step_time_spread import SCORES, Lateness, Ranks, moments

_PARTS = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSteps:
    """Steps of n jobs; every field is (n,)."""

    count: Floats
    persistence: Floats
    """The correlation of a device's lateness in two steps: 0 anew in each, 1 for the whole job."""


def lasting_share(ranks: Ranks, persistence: Floats) -> Floats:
    """The correlation of the lateness of two steps, (n,).

    The covariance of a maximum over N normals in two draws of correlation r rises, by Plackett's
    identity, as fast as the chance that both have the same latest rank, which goes as
    N ** (-(1 - r) / (1 + r)). One rank: the persistence itself.

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
    """Return quantiles of how late a job is, (n, scores), in seconds.

    Means and variances are summed exactly; of the shape only how far it is from a normal, by the
    third moment: steps that have all in common keep a step's shape, others lose it as a mean does.

    Args:
        late: of a step, in standard deviations of a microbatch.
        busy_s: what one such deviation is.
        steps: how many, and what lasts.
        share: the correlation of the lateness of two steps.
        normal_s: the standard deviation of what else a step takes, which is normal.
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
    """The mean over correlations of the chance that two draws have the same latest rank, (n,)."""
    chance = count[:, None] ** (-(1.0 - correlation) / (1.0 + correlation))
    ends = (chance[:, 0] + chance[:, -1]) / 2.0
    return np.asarray((chance.sum(axis=1) - ends) / (_PARTS - 1), dtype=np.float64)
