"""Rank agreement of two measures of the same designs."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats


def agreement(one: Floats, other: Floats) -> tuple[float, float]:
    """Return the concordant minus discordant pairs, and the pairs that differ in ``other``.

    Ties in ``one`` count as neither. Rows where either value is not finite are left out.

    Args:
        one: (n,).
        other: (n,).
    """
    left, right = _orders(one, other)
    return float((left * right).sum()), float(np.abs(right).sum())


def kendall(one: Floats, other: Floats) -> float | None:
    """Return Kendall's tau-b, from -1 to 1; ``None`` if all values of either are equal.

    Source:
        M. G. Kendall: The Treatment of Ties in Ranking Problems, Biometrika 33, 1945.
    """
    left, right = _orders(one, other)
    pairs = np.sqrt(np.abs(left).sum() * np.abs(right).sum())
    return float((left * right).sum() / pairs) if pairs > 0 else None


def _orders(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return the sign of the difference of each pair of known rows, in each of the two."""
    known = np.isfinite(one) & np.isfinite(other)
    left, right = one[known], other[known]
    rows, columns = np.triu_indices(len(left), 1)
    return np.sign(left[rows] - left[columns]), np.sign(right[rows] - right[columns])
