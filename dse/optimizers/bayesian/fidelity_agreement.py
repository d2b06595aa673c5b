"""Rank agreement of two measures of the same designs."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats


def agreement(one: Floats, other: Floats) -> tuple[float, float]:
    """Return concordant minus discordant pairs, and the pairs that differ in ``other``.

    A pair of equal values in ``one`` counts as none of both. Rows where either is unknown are
    left out.
    """
    left, right = _orders(one, other)
    return float((left * right).sum()), float(np.abs(right).sum())


def kendall(one: Floats, other: Floats) -> float | None:
    """Kendall's tau-b, from -1 to 1; ``None`` where all values of either are equal.

    Source:
        M. G. Kendall: The Treatment of Ties in Ranking Problems, Biometrika 33, 1945.
    """
    left, right = _orders(one, other)
    pairs = np.sqrt(np.abs(left).sum() * np.abs(right).sum())
    return float((left * right).sum() / pairs) if pairs > 0 else None


def _orders(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """The sign of the difference of each pair of known rows, in one and in the other."""
    known = np.isfinite(one) & np.isfinite(other)
    left, right = one[known], other[known]
    rows, columns = np.triu_indices(len(left), 1)
    return np.sign(left[rows] - left[columns]), np.sign(right[rows] - right[columns])
