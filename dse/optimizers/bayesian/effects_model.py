"""Kernel ridge regression with main effects and pairwise interactions, fitted in closed form."""

from __future__ import annotations

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
class EffectsModel:
    """Regression of a quantity on the parameters that vary among its training designs.

    The kernel is the mean over parameters of a Matern 5/2 kernel, plus the mean over pairs of
    parameters of their product. The only hyperparameter, the noise, minimises the squared
    leave-one-out error, so that a fit is one eigendecomposition.

    Source:
        Rasmussen, Williams: Gaussian Processes for Machine Learning, 2006, eq. 2.25 and 5.12;
        Duvenaud, Nickisch, Rasmussen: Additive Gaussian Processes, NeurIPS 2011 (second order).
    """

    points: Floats  # (n, c)
    groups: tuple[Ints, ...]  # the coordinates of each parameter
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
        groups = tuple(
            columns
            for columns in (
                np.flatnonzero(owners == one) for one in range(owners.max(initial=-1) + 1)
            )
            if np.ptp(points[:, columns], axis=0).any()
        )
        width = float(values.std()) if len(values) else 0.0
        if not groups or not width > 0:
            return None
        centre = float(values.mean())
        sizes, basis = eigh(_kernel(points, points, groups))
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

    def predict(self, points: Floats) -> Floats:
        """Return the predictions at k encoded designs, (k,)."""
        return np.asarray(self.centre + _kernel(points, self.points, self.groups) @ self.weights)


def _kernel(points: Floats, others: Floats, groups: tuple[Ints, ...]) -> Floats:
    """Return the kernel of main effects and pairwise interactions, (k, n)."""
    total = np.zeros((len(points), len(others)))
    squares = np.zeros_like(total)
    for columns in groups:
        seen, place = np.unique(points[:, columns], axis=0, return_inverse=True)
        table = matern(squared_distances(seen, others[:, columns]) / _LENGTH**2)
        total += table[place.reshape(-1)]
        squares += (table**2)[place.reshape(-1)]
    count = len(groups)
    pairs = (total**2 - squares) / max(count * (count - 1), 1)
    return np.asarray(total / count + pairs)
