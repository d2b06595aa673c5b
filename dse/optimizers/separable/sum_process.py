"""Gaussian process whose mean and kernel are sums over terms, with interactions as a residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from dse.core.values import Array, Floats, Ints
from dse.optimizers.bayesian.gaussian_process import (
    block_gaps,
    length_centre,
    matern,
    squared_distances,
)

_JITTER = 1e-8
_CENTRES = np.array([0.0, -2.3, -3.0, -7.0])
"""Prior means of the log weights: sensitivities, effects of single values, interactions, noise."""
_SPREADS = np.array([1.5, 1.5, 1.5, 2.5])
_BOUNDS = ((-14.0, 6.0), (-10.0, 4.0), (-10.0, 4.0), (-14.0, 0.0))
_STEPS = 60
_CHUNK = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLayout:
    """Layout of an additive model's inputs: encoded parameters first, then one column per feature.

    ``owners`` is the block (parameter) of each coordinate, ``alone`` the length-scale of each
    block's main effect, ``parents`` the feature of the group that each block belongs to, -1 where
    the group has none.
    """

    owners: Ints  # (c,)
    alone: Floats  # (b,)
    parents: Ints  # (b,)
    features: int

    @property
    def coordinates(self) -> int:
        """Number of columns of encoded parameters, which come before those of the features."""
        return len(self.owners)

    @property
    def length(self) -> float:
        """Length-scale of the interactions, the same for all parameters."""
        return float(np.exp(length_centre(len(self.alone))))


@dataclass(frozen=True, slots=True, kw_only=True)
class SumProcess:
    """Posterior of a metric that is a sum of terms per parameter group, given n measured values.

    The value is a constant, plus a common sensitivity times the sum of the features, plus a
    Gaussian process with four independent terms: deviations of the sensitivity of each feature,
    relative deviations of the values of each parameter, interactions (Matern 5/2 over all
    parameters) in proportion to the sum of the features, and noise. All terms but the noise vanish
    where the features do, that is, where nothing is changed. The constant and the common
    sensitivity are estimated by generalised least squares, the variances of the four terms by
    maximum posterior density.

    Source:
        Rasmussen, Williams: Gaussian Processes for Machine Learning, 2006, section 2.7 (explicit
        basis functions) and eq. 5.10-5.12 (leave one out); Duvenaud, Nickisch, Rasmussen: Additive
        Gaussian Processes, NeurIPS 2011 (first order).
    """

    points: Floats  # (n, c + features)
    layout: SumLayout
    hyper: Floats  # (4,), log variances relative to the amplitude
    trend: Floats  # (2,), the constant and the common sensitivity
    amplitude: float
    root: Floats  # (n, n), lower Cholesky factor of the covariance
    weights: Floats  # (n,)
    scales: Floats  # (3,), normalisers of the first three terms
    basis: Floats  # (n, 2)

    @staticmethod
    def fit(
        points: Floats, values: Floats, layout: SumLayout, *, variances: Floats | None = None
    ) -> SumProcess:
        """Fit the variances by L-BFGS from the centre of their prior.

        Args:
            points: (n, c + features), inputs.
            values: (n,), with a mean of about 0 and a standard deviation of about 1.
            layout: layout of the inputs.
            variances: (n,), observed variances of the values, to which the noise is added.
        """
        kernels, basis = _kernels(points, layout)

        def loss(hyper: Floats) -> tuple[float, Floats]:
            return _loss(hyper, kernels, basis, values, variances)

        found = minimize(
            loss, _CENTRES, jac=True, method="L-BFGS-B", bounds=_BOUNDS, options={"maxiter": _STEPS}
        )
        return SumProcess.at(points, values, layout, np.asarray(found.x), variances=variances)

    @staticmethod
    def at(
        points: Floats,
        values: Floats,
        layout: SumLayout,
        hyper: Floats,
        *,
        variances: Floats | None = None,
    ) -> SumProcess:
        """Return the posterior of an additive metric, for given prior variances."""
        kernels, basis = _kernels(points, layout)
        found = _solve(hyper, kernels, basis, values, variances)
        return SumProcess(
            points=points,
            layout=layout,
            hyper=hyper,
            trend=found.trend,
            amplitude=found.amplitude,
            root=found.root,
            weights=found.weights,
            scales=_scales(points, layout),
            basis=basis,
        )

    def moments(
        self,
        points: Floats,  # (k, c + features)
    ) -> tuple[Floats, Floats]:
        """Return posterior mean and standard deviation of the noise-free function, each (k,)."""
        parts = [
            self._some(points[start : start + _CHUNK])
            for start in range(0, max(len(points), 1), _CHUNK)
        ]
        means, variances = (np.concatenate(found) for found in zip(*parts, strict=True))
        return means, np.sqrt(variances)

    def _some(self, points: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance at a chunk of points; the trend's variance is included."""
        cut, seen = self.layout.coordinates, self.points
        features = points[:, cut:]
        cross = np.tensordot(np.exp(self.hyper[:3]), self._covariances(points, seen), axes=1)
        basis = _basis(features)
        mean = basis @ self.trend + cross @ self.weights
        part = solve_triangular(self.root, cross.T, lower=True, check_finite=False)
        prior = np.exp(self.hyper[:3]) @ self._prior_variances(points)
        left = prior - np.einsum("nk,nk->k", part, part) + self._trend_variances(basis, part)
        return mean, self.amplitude * np.maximum(left, 1e-10)

    def _covariances(self, points: Floats, others: Floats) -> Array:
        """Return the covariances of the first three terms with other points, (3, k, n)."""
        layout, cut = self.layout, self.layout.coordinates
        own, there = points[:, cut:], others[:, cut:]
        linear = own @ there.T / self.scales[0]
        relative = _relative_kernel(points, others, layout) / self.scales[1]
        length = layout.length
        square = squared_distances(points[:, :cut] / length, others[:, :cut] / length)
        joint = matern(square) * np.outer(_size(own), _size(there)) / self.scales[2]
        return np.stack([linear, relative, joint])

    def _prior_variances(self, points: Floats) -> Floats:
        """Return the prior variances of the first three terms at these points, (3, k)."""
        features = points[:, self.layout.coordinates :]
        blocks = _block_weights(features, self.layout)
        terms = [(features**2).sum(axis=1), (blocks**2).sum(axis=1), _size(features) ** 2]
        return np.asarray(np.stack(terms) / self.scales[:, None])

    def _trend_variances(self, basis: Floats, part: Floats) -> Floats:
        """Return the variances that the estimates of constant and common sensitivity add, (k,)."""
        solved = solve_triangular(self.root, self.basis, lower=True, check_finite=False)
        miss = basis.T - solved.T @ part
        inner = solved.T @ solved + 1e-10 * np.eye(2)
        return np.einsum("ik,ik->k", miss, np.linalg.solve(inner, miss))

    def term_effects(
        self,
        features: Floats,  # (r, features), of the rows of one term
        points: Floats,  # (r, c), coordinates of the term alone
        blocks: Ints,  # blocks (parameters) of the term
    ) -> Floats:
        """Return the posterior mean of one group's term in each of its r rows, (r,)."""
        layout, cut = self.layout, self.layout.coordinates
        weights = np.exp(self.hyper[:3]) / self.scales
        effect = self.trend[1] * features.sum(axis=1)
        effect += weights[0] * (features @ (self.points[:, cut:].T @ self.weights))
        inputs = np.column_stack([points, features])
        relative = _relative_kernel(inputs, self.points, layout, blocks)
        return np.asarray(effect + weights[1] * (relative @ self.weights))

    def left_out(self, values: Floats) -> tuple[Floats, Floats]:
        """Return leave-one-out means and standard deviations of the fitted values, (n,) each.

        The constant and the common sensitivity are estimated anew without each value.
        """
        inverse = cho_solve((self.root, True), np.eye(len(values)), check_finite=False)
        solved = inverse @ self.basis
        inner = self.basis.T @ solved + 1e-10 * np.eye(2)
        inverse -= solved @ np.linalg.solve(inner, solved.T)
        diagonal = np.maximum(np.diag(inverse), 1e-12)
        return values - (inverse @ values) / diagonal, np.sqrt(self.amplitude / diagonal)

    @property
    def values(self) -> Floats:
        """Measured values on which the posterior is conditioned, (n,)."""
        fitted = self.basis @ self.trend
        return np.asarray(fitted + self.root @ (self.root.T @ self.weights))


@dataclass(frozen=True, slots=True)
class _Solved:
    root: Floats
    trend: Floats
    weights: Floats
    amplitude: float


def _basis(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features.sum(axis=1)])


def _size(features: Floats) -> Floats:
    """Return the sum of the features of each point, (n,); 1 if there are no features."""
    return features.sum(axis=1) if features.shape[1] else np.ones(len(features))


def _block_weights(features: Floats, layout: SumLayout) -> Floats:
    """Return the feature of the term of each block, (n, b); 1 for terms without a feature."""
    padded = np.column_stack([features, np.ones(len(features))])
    return np.asarray(padded[:, layout.parents])


def _relative_kernel(
    points: Floats, others: Floats, layout: SumLayout, blocks: Ints | None = None
) -> Floats:
    """Return the covariance of the values' relative deviations, (k, n), summed over blocks.

    Args:
        points: (k, c + features), inputs.
        others: (n, c + features), inputs.
        layout: layout of the inputs.
        blocks: blocks to sum over; all by default.
    """
    cut = layout.coordinates
    mine = _block_weights(points[:, cut:], layout)
    theirs = _block_weights(others[:, cut:], layout)
    total = np.zeros((len(points), len(others)))
    for block in range(len(layout.alone)) if blocks is None else blocks.tolist():
        own = layout.owners == block
        seen, place = np.unique(points[:, :cut][:, own], axis=0, return_inverse=True)
        square = squared_distances(seen, others[:, :cut][:, own]) / layout.alone[block] ** 2
        table = matern(square) * theirs[:, block]
        total += mine[:, block, None] * table[place.reshape(-1)]
    return total


def _scales(points: Floats, layout: SumLayout) -> Floats:
    """Return the mean prior variance of each of the first three terms over the points; never 0."""
    features = points[:, layout.coordinates :]
    blocks = _block_weights(features, layout)
    terms = [(features**2).sum(axis=1), (blocks**2).sum(axis=1), _size(features) ** 2]
    means = np.array([float(term.mean()) for term in terms])
    return np.where(means > 0, means, 1.0)


def _kernels(points: Floats, layout: SumLayout) -> tuple[Array, Floats]:
    """Return the kernels of all terms except the noise, (3, n, n), and the trend's basis."""
    own, features = points[:, : layout.coordinates], points[:, layout.coordinates :]
    scales, size = _scales(points, layout), _size(points[:, layout.coordinates :])
    joint = matern(block_gaps(own, layout.owners, len(layout.alone)).sum(axis=0) / layout.length**2)
    terms = [features @ features.T, _relative_kernel(points, points, layout)]
    terms.append(joint * np.outer(size, size))
    return np.stack(terms) / scales[:, None, None], _basis(features)


def _solve(
    hyper: Floats, kernels: Array, basis: Floats, values: Floats, variances: Floats | None
) -> _Solved:
    """Return the generalised least-squares fit of the trend, and the residual's weights."""
    covariance = np.tensordot(np.exp(hyper[:3]), kernels, axes=1)
    noise = np.exp(hyper[3]) + _JITTER + (0.0 if variances is None else variances)
    covariance[np.diag_indices(len(values))] += noise
    root = cholesky(covariance, lower=True, check_finite=False)
    solved = cho_solve((root, True), np.column_stack([basis, values]), check_finite=False)
    inner = basis.T @ solved[:, :2] + 1e-10 * np.eye(2)
    trend = np.linalg.solve(inner, basis.T @ solved[:, 2])
    residual = values - basis @ trend
    weights = solved[:, 2] - solved[:, :2] @ trend
    # one pseudo-observation of a small size keeps the amplitude from zero
    amplitude = float((residual @ weights + 1e-3) / (len(values) + 1.0))
    return _Solved(root, trend, weights, amplitude)


def _loss(
    hyper: Floats, kernels: Array, basis: Floats, values: Floats, variances: Floats | None
) -> tuple[float, Floats]:
    """Return the negative log posterior density of the variances, and its gradient."""
    size = len(values)
    fit = _solve(hyper, kernels, basis, values, variances)
    inverse = cho_solve((fit.root, True), np.eye(size), check_finite=False)
    away = (hyper - _CENTRES) / _SPREADS
    density = 0.5 * (size + 1) * np.log(fit.amplitude) + np.log(np.diag(fit.root)).sum()
    inner = inverse - np.outer(fit.weights, fit.weights) / fit.amplitude
    slope = np.array([*(np.sum(inner * kernel) for kernel in kernels), np.trace(inner)])
    slope = 0.5 * np.exp(hyper) * slope + away / _SPREADS
    return float(density + 0.5 * away @ away), slope
