"""Kernel ridge regression with main effects and pairwise interactions, fitted in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.gaussian_process import matern, squared_distances

_LENGTH = 0.5
"""Length-scale of every parameter, as a fraction of its range."""
_NOISES = tuple(10.0**power for power in (-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1))
"""Noise variances to choose from, relative to the variance of the effects."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Distinct values of one parameter among k designs, and the value that each design has."""

    values: Floats  # (u, w), encoded in w coordinates
    place: Ints  # (k,), indices into the values


@dataclass(frozen=True, slots=True)
class Group:
    """Columns of the encoded designs that encode one parameter, given by the parameter's index."""

    owner: int
    columns: Ints  # (w,)


@dataclass(frozen=True, slots=True)
class EffectsModel:
    """Regression of a quantity on the parameters that vary among its training designs.

    The kernel is the mean of the parameters' Matern 5/2 kernels, plus the mean, over pairs of
    parameters, of the product of their kernels. The only hyperparameter, the noise, minimises the
    squared leave-one-out error, so that a fit is one eigendecomposition.

    Source:
        Rasmussen, Williams: Gaussian Processes for Machine Learning, 2006, eq. 2.25 and 5.12;
        Duvenaud, Nickisch, Rasmussen: Additive Gaussian Processes, NeurIPS 2011 (second order).
    """

    points: Floats  # (n, c)
    groups: tuple[Group, ...]
    weights: Floats  # (n,)
    centre: float
    error: float
    """Root mean square of the leave-one-out errors, relative to the values' deviation."""

    @staticmethod
    def fit(points: Floats, values: Floats, owners: Ints) -> EffectsModel | None:
        """Fit the model; ``None`` if the values or all parameters are constant.

        Args:
            points: (n, c), encoded designs.
            values: (n,), finite.
            owners: (c,), the parameter of each coordinate.
        """
        every = [
            Group(owner, np.flatnonzero(owners == owner))
            for owner in range(owners.max(initial=-1) + 1)
        ]
        groups = tuple(one for one in every if np.ptp(points[:, one.columns], axis=0).any())
        width = float(values.std()) if len(values) else 0.0
        if not groups or not width > 0:
            return None
        centre = float(values.mean())
        sizes, basis = eigh(_kernel(points, groups))
        turned = basis.T @ (values - centre)
        best: tuple[float, Floats] | None = None
        for noise in _NOISES:
            shrunk = 1.0 / (np.maximum(sizes, 0.0) + noise)
            weights = basis @ (shrunk * turned)
            missed = weights / ((basis**2) @ shrunk)
            error = float(np.sqrt((missed**2).mean()))
            if best is None or error < best[0]:
                best = error, weights
        assert best is not None
        return EffectsModel(points, groups, best[1], centre, best[0] / width)

    def predict(self, levels: Sequence[Levels]) -> Floats:
        """Return the predictions at k designs, (k,).

        Args:
            levels: the distinct values of each parameter among the designs, by its owner.
        """
        own = [levels[group.owner] for group in self.groups]
        tables = [
            _correlate(one.values, self.points[:, group.columns])
            for one, group in zip(own, self.groups, strict=True)
        ]
        count = len(own)
        mains = sum(
            (table @ self.weights)[one.place] for one, table in zip(own, tables, strict=True)
        )
        pairs = np.zeros(len(own[0].place))
        for a in range(count):
            weighted = tables[a] * self.weights
            for b in range(a):
                if len(tables[a]) * len(tables[b]) <= len(pairs):
                    pairs += (weighted @ tables[b].T)[own[a].place, own[b].place]
                else:
                    left, right = weighted[own[a].place], tables[b][own[b].place]
                    pairs += np.einsum("kn,kn->k", left, right)
        return np.asarray(self.centre + mains / count + pairs / max(count * (count - 1) / 2, 1))


def find_levels(points: Floats, owners: Ints) -> list[Levels]:
    """Return the distinct values of each parameter among encoded designs.

    Args:
        points: (k, c), encoded designs.
        owners: (c,), the parameter of each coordinate.
    """
    found = []
    for owner in range(owners.max(initial=-1) + 1):
        own = points[:, owners == owner]
        codes = own @ _distinct_sums(own.shape[1])
        _, first, place = np.unique(codes, return_index=True, return_inverse=True)
        found.append(Levels(own[first], place.reshape(-1)))
    return found


def _distinct_sums(width: int) -> Floats:
    """Return weights with which one-hot coordinates of a parameter have distinct sums, (width,)."""
    return np.arange(1.0, width + 1.0)


def _correlate(values: Floats, others: Floats) -> Floats:
    return matern(squared_distances(values, others) / _LENGTH**2)


def _kernel(points: Floats, groups: Sequence[Group]) -> Floats:
    """Return the kernel of main effects and pairwise interactions of n points, (n, n)."""
    total = np.zeros((len(points), len(points)))
    squares = np.zeros_like(total)
    for group in groups:
        one = _correlate(points[:, group.columns], points[:, group.columns])
        total += one
        squares += one**2
    count = len(groups)
    return np.asarray(total / count + (total**2 - squares) / max(count * (count - 1), 1))
