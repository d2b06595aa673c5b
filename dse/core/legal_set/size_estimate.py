"""Monte-Carlo estimate of the size of a legal set that cannot be counted exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

CONFIDENCE = 0.95
"""Confidence level of the interval."""

_NORMAL = 1.959963984540054
"""Two-sided quantile of the normal distribution at :data:`CONFIDENCE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimated size of a legal set with its confidence interval.

    The size is about ``count``, and between ``low`` and ``high`` at the confidence level
    :data:`CONFIDENCE`. ``at_most`` is the size of a superset and therefore a certain upper bound;
    ``hits`` of the ``draws`` from the superset were legal.
    """

    count: int
    low: int
    high: int
    at_most: int
    hits: int
    draws: int


def estimate_of(at_most: int, hits: int, draws: int, *, found: bool) -> Estimate:
    """Estimate the size of a legal set from the fraction of a superset's draws that are legal.

    Args:
        at_most: the size of the superset.
        hits: number of legal draws.
        draws: number of draws.
        found: whether any legal design is known.

    Source:
        Wilson: Probable Inference, the Law of Succession, and Statistical Inference, JASA 22,
        1927 (the score interval).
    """
    share, weight = hits / draws, _NORMAL**2 / draws
    middle = (share + weight / 2) / (1 + weight)
    half = _NORMAL / (1 + weight) * math.sqrt(share * (1 - share) / draws + weight / (4 * draws))
    low = max(middle - half, 0.0) if hits else 0.0
    high = min(middle + half, 1.0) if hits < draws else 1.0
    return Estimate(
        count=round(at_most * Fraction(hits, draws)),
        low=max(math.floor(at_most * Fraction(low)), int(found or hits > 0)),
        high=math.ceil(at_most * Fraction(high)),
        at_most=at_most,
        hits=hits,
        draws=draws,
    )
