"""Gaussian process whose mean and kernel are sums over parts, with interactions as a residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from dse.core.values import Array, Floats, Ints
from dse.optimizers.bayesian.gaussian_process import (
    alone_kernel,
    alone_kernel_with,
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
    """Layout of the inputs of a sum: encoded parameters first, then one feature per column.

    ``owners`` is the block (parameter) of each coordinate, ``alone`` the length-scale of each
    block's main effect.
    """

    owners: Ints  # (c,)
    alone: Floats  # (b,)
    features: int

    @property
    def coordinates(self) -> int:
        """Number of coordinates before the features."""
        return len(self.owners)

    @property
    def length(self) -> float:
        """Length-scale of the interactions, the same in all blocks."""
        return float(np.exp(length_centre(len(self.alone))))


@dataclass(frozen=True, slots=True, kw_only=True)
class SumProcess:
    """Posterior of a sum of parts given n values.

    The value is a constant, plus a common sensitivity times the sum of the features, plus a
    Gaussian process with four independent terms: deviations of the sensitivity of each feature,
    an effect of each value of each parameter, interactions (Matern 5/2 over all parameters), and
    noise. The constant and the common sensitivity are estimated by generalised least squares, the
    variances of the four terms by maximum posterior density.

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
    scale: float
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
        """Return the posterior for given variances; see :meth:`fit` for the arguments."""
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
            scale=_feature_scale(points[:, layout.coordinates :]),
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
        """Return mean and variance at a chunk of points, with that of the trend."""
        weights, cut = np.exp(self.hyper), self.layout.coordinates
        features, own = points[:, cut:], points[:, :cut]
        seen = self.points[:, :cut]
        linear, main = self._additive(features, own)
        length = self.layout.length
        joint = matern(squared_distances(own / length, seen / length))
        cross = linear + main + weights[2] * joint
        basis = _basis(features)
        mean = basis @ self.trend + cross @ self.weights
        part = solve_triangular(self.root, cross.T, lower=True, check_finite=False)
        prior = weights[0] * (features**2).sum(axis=1) / self.scale + weights[1] + weights[2]
        left = prior - np.einsum("nk,nk->k", part, part) + self._trend_variances(basis, part)
        return mean, self.amplitude * np.maximum(left, 1e-10)

    def _additive(self, features: Floats, own: Floats) -> tuple[Floats, Floats]:
        """Return the prior covariances with the training points of the two additive terms."""
        weights, cut = np.exp(self.hyper), self.layout.coordinates
        linear = weights[0] / self.scale * (features @ self.points[:, cut:].T)
        blocks = max(len(self.layout.alone), 1)
        seen, owners = self.points[:, :cut], self.layout.owners
        main = weights[1] / blocks * alone_kernel_with(own, seen, owners, self.layout.alone)
        return linear, main

    def _trend_variances(self, basis: Floats, part: Floats) -> Floats:
        """Return the variances that the estimates of constant and common sensitivity add, (k,)."""
        solved = solve_triangular(self.root, self.basis, lower=True, check_finite=False)
        miss = basis.T - solved.T @ part
        inner = solved.T @ solved + 1e-10 * np.eye(2)
        return np.einsum("ik,ik->k", miss, np.linalg.solve(inner, miss))

    def part_effects(
        self,
        features: Floats,  # (r, features), of the rows of one part
        points: Floats,  # (r, c), coordinates of the part alone
        blocks: Ints,  # blocks (parameters) of the part
    ) -> Floats:
        """Return the posterior mean of one part's summand in each of its rows, (r,)."""
        weights, layout = np.exp(self.hyper), self.layout
        effect = self.trend[1] * features.sum(axis=1)
        cut = layout.coordinates
        effect += weights[0] / self.scale * (features @ (self.points[:, cut:].T @ self.weights))
        own = np.isin(layout.owners, blocks)
        renamed = np.searchsorted(blocks, layout.owners[own])
        seen = self.points[:, :cut][:, own]
        main = alone_kernel_with(points[:, own], seen, renamed, layout.alone[blocks])
        return np.asarray(effect + weights[1] / max(len(layout.alone), 1) * main @ self.weights)

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
        """Values that the posterior is conditioned on, (n,)."""
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


def _feature_scale(features: Floats) -> float:
    """Return the mean over the training points of the features' sum of squares; 1 if it is 0."""
    return float((features**2).sum(axis=1).mean()) or 1.0


def _kernels(points: Floats, layout: SumLayout) -> tuple[Array, Floats]:
    """Return the kernels of the terms but for the noise, (3, n, n), and the trend's basis."""
    own, features = points[:, : layout.coordinates], points[:, layout.coordinates :]
    gaps = block_gaps(own, layout.owners, len(layout.alone))
    joint = matern(gaps.sum(axis=0) / layout.length**2)
    linear = features @ features.T / _feature_scale(features)
    return np.stack([linear, alone_kernel(gaps, layout.alone), joint]), _basis(features)


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
