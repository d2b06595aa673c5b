"""Regression of a network's time as a sum over its operators, with a time for each unit of work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

_PULL = 0.05
"""Weight by which work of a kind that few runs have is drawn to the rate of all kinds."""


@dataclass(frozen=True, kw_only=True)
class OperatorSum:
    """Linear model of a network's time, with a non-negative time per unit of each feature."""

    coefficients: Floats  # (f,)

    def predict(
        self,
        features: Floats,  # (n, f)
    ) -> Floats:
        """Return the time of n networks, (n,), in the unit of the fit."""
        return np.asarray(features @ self.coefficients)


def fit_operator_sum(
    features: Floats,  # (n, f)
    target: Floats,  # (n,)
) -> OperatorSum:
    """Fit non-negative times that minimise squared relative errors.

    Every residual is divided by the run's time. A row for each feature draws its time to zero,
    scaled by the feature's mean share, so that work that runs hardly have gets no extreme time.

    Args:
        features: work of n networks by kind of operator.
        target: the time of each, above 0.

    Source:
        Lawson, Hanson: Solving Least Squares Problems, 1974, for the non-negative least squares.
    """
    from scipy.optimize import nnls

    rows = features / target[:, None]  # (n, f)
    scale = np.sqrt((rows**2).mean(axis=0))  # (f,)
    kept = scale > 0
    unit = rows[:, kept] / scale[kept]
    pull = _PULL * np.eye(unit.shape[1])
    found, _ = nnls(
        np.vstack([unit, pull]), np.concatenate([np.ones(len(unit)), np.zeros(len(pull))])
    )
    coefficients = np.zeros(features.shape[1])
    coefficients[kept] = found / scale[kept]
    return OperatorSum(coefficients=coefficients)
