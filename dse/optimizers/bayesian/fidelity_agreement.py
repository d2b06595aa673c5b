"""Rank agreement of two metrics of the same designs."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats


def agreement(one: Floats, other: Floats) -> tuple[float, float]:
    """Return Kendall's score of two metrics, and the number of pairs of designs compared.

    The score is the number of concordant minus that of discordant pairs; ties count as 0. The pairs
    compared are those that differ in ``other``. Designs where either value is not finite are left
    out.

    Args:
        one: first metric of n designs, (n,).
        other: second metric of the same designs, (n,).
    """
    left, right = _orders(one, other)
    return float((left * right).sum()), float(np.abs(right).sum())


def kendall(one: Floats, other: Floats) -> float | None:
    """Return Kendall's tau-b of two metrics, from -1 to 1; ``None`` if one of them is constant.

    Source:
        M. G. Kendall: The Treatment of Ties in Ranking Problems, Biometrika 33, 1945.
    """
    left, right = _orders(one, other)
    pairs = np.sqrt(np.abs(left).sum() * np.abs(right).sum())
    return float((left * right).sum() / pairs) if pairs > 0 else None


def _orders(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return the sign of the difference within each pair of designs, for either metric.

    Designs without a finite value of both are left out.
    """
    known = np.isfinite(one) & np.isfinite(other)
    left, right = one[known], other[known]
    rows, columns = np.triu_indices(len(left), 1)
    return np.sign(left[rows] - left[columns]), np.sign(right[rows] - right[columns])
