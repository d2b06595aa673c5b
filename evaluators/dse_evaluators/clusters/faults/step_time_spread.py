"""Distribution of the time of steps, and of jobs of many steps, when device speeds vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

from dse.core.values import Floats

SCORES: Floats = np.linspace(-5.0, 5.0, 201)
"""Normal scores of the quantiles that represent a distribution: 0 is the median, 1.645 the p95."""

QUANTILES: Mapping[str, float] = {
    "p50": 0.0,
    "p95": 1.6448536269514722,
    "p99": 2.3263478740408408,
}
"""Normal scores of the reported quantiles."""

_DENSITY: Floats = np.exp(-0.5 * SCORES**2)

_WEIGHTS: Floats = _DENSITY / _DENSITY.sum()

_POINTS = 281

_HIGHEST = 10.0

_LOWEST_LOG = -28.0

_SMALL = 1e-9

_RAMP: Floats = np.clip(np.linspace(-1.0, 1.0, _POINTS), 0.0, 1.0)
"""Offsets of the time grid, in ``_HIGHEST`` standard deviations of the other stages' sum.

The second half of the grid covers sums that are later than those of the latest maximum.
"""

_ROWS = 32
"""Rows per chunk; the grid of a row has _POINTS x _POINTS numbers."""

_PARTS = 65


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Parallel layout of n training steps; every field is (n,)."""

    tensor: Floats
    pipeline: Floats
    data: Floats
    microbatches: Floats
    interleave: Floats

    @property
    def count(self) -> Floats:
        return self.tensor * self.pipeline * self.data

    @property
    def path(self) -> Floats:
        """Length of a training step in microbatch times when no device is late, (n,)."""
        return self.microbatches + (self.pipeline - 1.0) / self.interleave


class Lateness(NamedTuple):
    """Distribution of the lateness of n steps, by quantiles.

    Lateness is the excess over the nominal time, in standard deviations of a device's time for a
    microbatch.
    """

    mean: Floats  # (n,)
    deviation: Floats  # (n,)
    shape: Floats  # (n, scores), quantiles with mean 0 and standard deviation 1


def lateness(ranks: Ranks) -> Lateness:
    """Return the distribution of the lateness of n training steps: the excess over nominal time.

    With one pipeline stage, the result is accurate to 0.1 % of its standard deviation.

    A stage is as late as the latest of its T tensor-parallel devices, z = max of T. With all
    forward passes before the backward ones, a replica takes M microbatches of its latest stage and
    one of each other stage, (M max z + (sum of the other z) / interleave). A step takes as long as
    the latest replica. 1F1B takes as long where all stages are equal, and hides some lateness of
    early stages: a step is then 0.6 % shorter at 8 stages, 32 microbatches and a spread of 5 %, and
    1.8 % at 4, 8 and 10 %.

    The distribution function of a maximum is a power. Given the maximum, the other stages are
    independent; their sum is approximated as normal, with the moments of the distribution truncated
    at the maximum.

    Source:
        Golden et al.: PRISM: Probabilistic Runtime Insights and Scalable Performance Modeling for
        Large-Scale Distributed Training, 2025 (serial: sums, parallel: maxima); a flow shop of
        equal jobs takes their sum over machines plus the slowest machine for every further job.
    """
    parts = [_some(ranks, slice(at, at + _ROWS)) for at in range(0, len(ranks.tensor), _ROWS)]
    quantiles = np.concatenate([np.empty((0, len(SCORES))), *parts])
    mean, deviation = moments(quantiles)
    return Lateness(mean, deviation, (quantiles - mean[:, None]) / deviation[:, None])


def moments(quantiles: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of n distributions that quantiles describe, (n,) each."""
    mean = (quantiles * _WEIGHTS).sum(axis=1)
    square = ((quantiles - mean[:, None]) ** 2 * _WEIGHTS).sum(axis=1)
    return mean, np.sqrt(square)


def worst(quantiles: Floats, score: float) -> Floats:
    """Return the conditional value at risk: the mean above the quantile at ``score``, (n,).

    ``score`` is the corresponding quantile of the standard normal distribution.
    """
    half = (SCORES[1] - SCORES[0]) / 2.0
    weights = ndtr(-np.maximum(SCORES - half, score)) - ndtr(-np.maximum(SCORES + half, score))
    return np.asarray((quantiles * weights).sum(axis=1) / weights.sum(), dtype=np.float64)


def at(quantiles: Floats, score: float) -> Floats:
    """Return a quantile of n distributions, by interpolation between known quantiles, (n,).

    ``score`` is the quantile of the standard normal distribution at the same probability.
    """
    place = (score - SCORES[0]) / (SCORES[1] - SCORES[0])
    low = min(int(place), len(SCORES) - 2)
    share = place - low
    return (1.0 - share) * quantiles[:, low] + share * quantiles[:, low + 1]


def above(quantiles: Floats, limits: Floats) -> Floats:
    """Return the probability that each of n distributions exceeds its limit, (n,)."""
    scores = [np.interp(x, row, SCORES) for x, row in zip(limits, quantiles, strict=True)]
    # Beyond the last node only an upper bound is known, the tail there, so 0 is returned.
    inside = ndtr(-np.array(scores, dtype=np.float64))
    return np.where(
        limits >= quantiles[:, -1], 0.0, np.where(limits < quantiles[:, 0], 1.0, inside)
    )


def _some(ranks: Ranks, rows: slice) -> Floats:
    """Return the lateness quantiles of some designs, given by index, (designs, scores)."""
    tensor, stages = ranks.tensor[rows, None], ranks.pipeline[rows, None]
    replicas, interleave = ranks.data[rows, None], ranks.interleave[rows, None]
    lowest = ndtri_exp(_LOWEST_LOG / tensor)
    step = (_HIGHEST - lowest) / (_POINTS - 1)
    latest = lowest + step * np.arange(_POINTS)  # (rows, points)
    mean, variance = _below(latest, step, tensor)
    others = (stages - 1.0) / interleave
    centre = ranks.microbatches[rows, None] * latest + others * mean
    spread = np.sqrt((stages - 1.0) * variance) / interleave
    edges = np.concatenate([latest - step / 2.0, latest[:, -1:] + step / 2.0], axis=1)
    over = -np.expm1(tensor * stages * log_ndtr(edges))
    mass = over[:, :-1] - over[:, 1:]
    mass[:, 0] += 1.0 - over[:, 0]
    # Tail probabilities, unlike 1 - CDF, keep their digits where the latest of many replicas is.
    times = centre + _HIGHEST * _RAMP * spread
    later = ndtr((centre[:, :, None] - times[:, None, :]) / (spread[:, :, None] + _SMALL))
    tail = np.einsum("rm,rmy->ry", mass, later)
    rate = -np.log1p(-np.minimum(tail, 1.0 - 1e-16)) * replicas  # -log CDF of the maximum
    coordinate = -np.log(np.maximum(rate, 1e-300))
    wanted = -np.log(-log_ndtr(SCORES))
    return np.stack([np.interp(wanted, x, y) for x, y in zip(coordinate, times, strict=True)])


def _below(latest: Floats, step: Floats, tensor: Floats) -> tuple[Floats, Floats]:
    """Return the mean and variance of a stage's delay, given that it is at most ``latest``.

    The integrals are evaluated by the trapezoidal rule.
    """
    function = np.exp(tensor * log_ndtr(latest))
    area = _integrate_values(function, step)
    moment = _integrate_values(function * latest, step)
    mean = latest - area / function
    square = latest**2 - 2.0 * moment / function
    return mean, np.maximum(square - mean**2, 0.0)


def _integrate_values(values: Floats, step: Floats) -> Floats:
    pairs = (values[:, 1:] + values[:, :-1]) * step / 2.0
    return np.concatenate([np.zeros_like(step), np.cumsum(pairs, axis=1)], axis=1)


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
        busy_s: standard deviation of a device's time for a microbatch, in seconds, (n,).
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
