"""Gaussian process with one length-scale per parameter, encoded as a block of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from dse.core.values import Array, Floats, Ints

_ROOT5 = 5.0**0.5
_JITTER = 1e-8
_NOISE = (-6.0 * np.log(10.0), 0.0)
"""Bounds of the log noise variance, relative to the amplitude."""
_LENGTH = (np.log(0.05), np.log(60.0))
_OWN_SPREAD = 0.3
_SHARED_SPREAD = 1.0
_NOISE_CENTRE, _NOISE_SPREAD = np.log(1e-3), 2.5
_MAIN = (-4.0 * np.log(10.0), 2.0 * np.log(10.0))
"""Bounds of the log variance of the main effects, relative to the amplitude."""
_MAIN_CENTRE, _MAIN_SPREAD = 1.0, 1.5
ALONE = 0.5
"""Length-scale of main effects, as a fraction of a range; fitting it cost more than it gained."""
_STEPS = 60
_NEGLIGIBLE = 1e-6
_FEW = 64
_CHUNK = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyper:
    """Hyperparameters of the Gaussian process, as logarithms.

    They are the length-scale of each block (parameter), the weight of the main effects and the
    noise.
    """

    lengths: Floats  # (b,)
    main: float
    noise: float

    @property
    def vector(self) -> Floats:
        """Hyperparameters as one vector, (b + 2,): b length-scales, main-effects weight, noise."""
        return np.concatenate([self.lengths, [self.main, self.noise]])

    @staticmethod
    def of(vector: Floats) -> Hyper:
        """Return the hyperparameters that a vector in the layout of :attr:`vector` holds."""
        return Hyper(lengths=vector[:-2], main=float(vector[-2]), noise=float(vector[-1]))

    @staticmethod
    def start(blocks: int) -> Hyper:
        """Return the prior mean of the hyperparameters for b blocks: the start of every fit."""
        centre = np.full(blocks, length_centre(blocks))
        return Hyper(lengths=centre, main=_MAIN_CENTRE, noise=_NOISE_CENTRE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProcess:
    """Gaussian-process posterior given n values; Matern 5/2 kernel, constant mean.

    The kernel is a joint kernel over all blocks (the coordinates of one parameter each) plus the
    mean of one kernel per block. The latter are main effects: they extrapolate the observed effect
    of one parameter to unseen values of the other parameters.

    Source:
        Duvenaud, Nickisch, Rasmussen: Additive Gaussian Processes, NeurIPS 2011 (first order);
        Rasmussen, Williams: Gaussian Processes for Machine Learning, 2006, eq. 2.25-2.26 and
        4.17; eq. 5.10-5.12 (leave one out). Mean and amplitude are profiled out of the likelihood
        (Jones, Schonlau, Welch: Efficient Global Optimization, 1998, eq. 5-6).
    """

    points: Floats  # (n, c)
    owners: Ints  # (c,), the block of each coordinate
    alone: Floats  # (b,), the length-scale of each block's main effect
    hyper: Hyper
    mean: float
    amplitude: float
    root: Floats  # (n, n), lower Cholesky factor of the correlation with noise
    weights: Floats  # (n,)

    @staticmethod
    def fit(
        points: Floats,
        values: Floats,
        owners: Ints,
        *,
        alone: Floats | None = None,
        variances: Floats | None = None,
    ) -> GaussianProcess:
        """Fit the hyperparameters to maximum posterior density, by L-BFGS from the prior's centre.

        Args:
            points: (n, c), coordinates.
            values: (n,), with a mean of about 0 and a standard deviation of about 1.
            owners: (c,), the block of each coordinate.
            alone: (b,), length-scales of the blocks' main effects; by default :data:`ALONE`.
            variances: (n,), observed variances of the values, to which the noise is added.
        """
        count = int(owners.max(initial=-1)) + 1
        gaps = block_gaps(points, owners, count)
        lengths = np.full(count, ALONE) if alone is None else alone
        main = alone_kernel(gaps, lengths)

        def loss(theta: Floats) -> tuple[float, Floats]:
            return _loss(theta, gaps, main, values, variances)

        found = minimize(
            loss,
            Hyper.start(count).vector,
            jac=True,
            method="L-BFGS-B",
            bounds=[_LENGTH] * count + [_MAIN, _NOISE],
            options={"maxiter": _STEPS},
        )
        hyper = Hyper.of(found.x)
        return GaussianProcess.at(points, values, owners, hyper, alone=lengths, variances=variances)

    @staticmethod
    def at(
        points: Floats,
        values: Floats,
        owners: Ints,
        hyper: Hyper,
        *,
        alone: Floats | None = None,
        variances: Floats | None = None,
    ) -> GaussianProcess:
        """Return the posterior for given hyperparameters; arguments are as in :meth:`fit`."""
        gaps = block_gaps(points, owners, len(hyper.lengths))
        lengths = np.full(len(hyper.lengths), ALONE) if alone is None else alone
        fit = _profile_likelihood(
            hyper.vector, gaps, alone_kernel(gaps, lengths), values, variances
        )
        return GaussianProcess(
            points=points,
            owners=owners,
            alone=lengths,
            hyper=hyper,
            mean=fit.mean,
            amplitude=fit.amplitude,
            root=fit.root,
            weights=fit.weights,
        )

    def moments(
        self,
        points: Floats,  # (k, c)
    ) -> tuple[Floats, Floats]:
        """Return posterior mean and standard deviation of the noise-free function, each (k,)."""
        parts = [
            self._some(points[start : start + _CHUNK])
            for start in range(0, max(len(points), 1), _CHUNK)
        ]
        means, variances = (np.concatenate(found) for found in zip(*parts, strict=True))
        return means, np.sqrt(variances)

    def _some(self, points: Floats) -> tuple[Floats, Floats]:
        """Return posterior mean and variance at a chunk of points that fits in the CPU cache."""
        cross = self._correlation(points)
        mean = self.mean + cross @ self.weights
        part = solve_triangular(self.root, cross.T, lower=True, check_finite=False)
        left = 1.0 + np.exp(self.hyper.main) - np.einsum("nk,nk->k", part, part)
        return mean, self.amplitude * np.maximum(left, 1e-10)

    def left_out(self, values: Floats) -> tuple[Floats, Floats]:
        """Return leave-one-out means and standard deviations of the fitted values, (n,) each."""
        inverse = cho_solve((self.root, True), np.eye(len(values)), check_finite=False)
        diagonal = np.diag(inverse)
        return values - self.weights / diagonal, np.sqrt(self.amplitude / diagonal)

    def _correlation(self, points: Floats) -> Floats:
        """Return the prior correlation of each point with each training point, (k, n)."""
        scale = np.exp(-self.hyper.lengths)[self.owners]
        joint = matern(squared_distances(points * scale, self.points * scale))
        weight = np.exp(self.hyper.main) / max(len(self.hyper.lengths), 1)
        if weight > _NEGLIGIBLE:
            joint += weight * alone_kernel_with(points, self.points, self.owners, self.alone)
        return joint


@dataclass(frozen=True, slots=True)
class _Fit:
    root: Floats
    weights: Floats
    mean: float
    amplitude: float
    square: Floats


def _profile_likelihood(
    theta: Floats, gaps: Array, alone: Array, values: Floats, variances: Floats | None
) -> _Fit:
    """Compute the mean and amplitude of maximum likelihood, in closed form.

    ``theta`` holds the other hyperparameters.
    """
    square = np.tensordot(np.exp(-2 * theta[:-2]), gaps, axes=1)
    correlation = matern(square) + np.exp(theta[-2]) * alone
    noise = np.exp(theta[-1]) + _JITTER + (0.0 if variances is None else variances)
    correlation[np.diag_indices(len(values))] += noise
    root = cholesky(correlation, lower=True, check_finite=False)
    ones = cho_solve((root, True), np.ones(len(values)), check_finite=False)
    solved = cho_solve((root, True), values, check_finite=False)
    mean = float(solved.sum() / ones.sum())
    residual = values - mean
    weights = solved - mean * ones
    # one pseudo-observation of size 1 keeps the amplitude of few or of equal values from zero
    amplitude = float((residual @ weights + 1.0) / (len(values) + 1.0))
    return _Fit(root, weights, mean, amplitude, square)


def _loss(
    theta: Floats, gaps: Array, alone: Array, values: Floats, variances: Floats | None
) -> tuple[float, Floats]:
    """Return the negative log posterior density of the hyperparameters, and its gradient."""
    size = len(values)
    fit = _profile_likelihood(theta, gaps, alone, values, variances)
    likelihood = -0.5 * (size + 1) * np.log(fit.amplitude) - np.log(np.diag(fit.root)).sum()
    inverse = cho_solve((fit.root, True), np.eye(size), check_finite=False)
    inner = np.outer(fit.weights, fit.weights) / fit.amplitude - inverse
    pull = gaps.reshape(len(gaps), -1) @ (inner * _matern_slope(fit.square)).ravel()
    main = np.exp(theta[-2]) * (inner * alone).sum()
    noise = np.exp(theta[-1]) * np.trace(inner)
    slope = np.append(pull * np.exp(-2 * theta[:-2]), [main, noise])
    prior, prior_slope = _prior(theta)
    return -(likelihood + prior), -(0.5 * slope + prior_slope)


def _prior(theta: Floats) -> tuple[float, Floats]:
    """Return the log prior density of the hyperparameters, and its gradient.

    Length-scales are log-normal and correlated; their centre grows with the square root of their
    number. The deviation that they share has a wide prior (``_SHARED_SPREAD``), the deviation of
    each one a narrow one (``_OWN_SPREAD``), since separate length-scales overfit a few values.

    Source:
        Hvarfner, Hellsten, Nardi: Vanilla Bayesian Optimization Performs Great in High
        Dimensions, ICML 2024, section 5 (the centre).
    """
    away = theta - Hyper.start(len(theta) - 2).vector
    lengths = away[:-2]
    own, shared = _OWN_SPREAD**2, _SHARED_SPREAD**2
    pooled = shared * lengths.sum() / (own + len(lengths) * shared)
    spread = np.array([_MAIN_SPREAD, _NOISE_SPREAD])
    slope = np.append((lengths - pooled) / own, away[-2:] / spread**2)
    return float(-0.5 * away @ slope), -slope


def length_centre(count: int) -> float:
    """Return the prior mean of the log length-scale for a number of blocks (parameters)."""
    return float(0.5 * np.log(max(count, 1)) + np.log(0.7))


def block_gaps(points: Floats, owners: Ints, count: int) -> Array:
    """Return squared distances of all pairs of points within each block, (b, n, n)."""
    gaps = np.zeros((count, len(points), len(points)))
    for place, owner in enumerate(owners.tolist()):
        gaps[owner] += (points[:, place, None] - points[None, :, place]) ** 2
    return gaps


def alone_kernel(gaps: Array, lengths: Floats) -> Array:
    """Return the main-effects kernel: the mean over blocks of each block's kernel, (n, n)."""
    if not len(gaps):
        return np.zeros(gaps.shape[1:])
    return np.asarray(
        np.mean([matern(own / x**2) for own, x in zip(gaps, lengths, strict=True)], axis=0)
    )


def alone_kernel_with(points: Floats, others: Floats, owners: Ints, lengths: Floats) -> Floats:
    """Return the sum over blocks of each block's kernel with other points, (k, n).

    In blocks with few distinct values, each value is computed once; one matrix product expands the
    results of all such blocks together.
    """
    total = np.zeros((len(points), len(others)))
    picks, tables = [], []
    for block, length in enumerate(lengths.tolist()):
        own = owners == block
        seen, place = np.unique(points[:, own], axis=0, return_inverse=True)
        table = matern(squared_distances(seen, others[:, own]) / length**2)
        if len(seen) > _FEW:
            total += table[place.reshape(-1)]
            continue
        pick = np.zeros((len(points), len(seen)))
        pick[np.arange(len(points)), place.reshape(-1)] = 1.0
        picks.append(pick)
        tables.append(table)
    return total + np.hstack(picks) @ np.vstack(tables) if picks else total


def squared_distances(points: Floats, others: Floats) -> Floats:
    """Return the squared Euclidean distances between two sets of points, (k, n)."""
    square = points @ (-2.0 * others.T)
    square += (others**2).sum(axis=1)
    square += (points**2).sum(axis=1)[:, None]
    return np.maximum(square, 0.0, out=square)


def matern(
    square: Floats,  # squared scaled distances
) -> Floats:
    """Return the Matern 5/2 correlation at squared distances in units of the length-scale."""
    distance = np.sqrt(square)
    distance *= _ROOT5
    faded = np.exp(-distance)
    distance *= 1.0 + distance / 3.0
    distance += 1.0
    return np.asarray(distance * faded)


def _matern_slope(
    square: Floats,  # squared scaled distances
) -> Floats:
    """Return -2 times the kernel's derivative in the squared distance: 5/3 (1 + a) exp(-a)."""
    distance = _ROOT5 * np.sqrt(square)
    return np.asarray((5.0 / 3.0) * (1.0 + distance) * np.exp(-distance))


def owners_of(widths: Sequence[int]) -> Ints:
    """Return the block index of each coordinate, given the number of coordinates per block."""
    return np.repeat(np.arange(len(widths)), widths)
