"""Size of a space, for machines: a count, or an estimate with its interval."""

from __future__ import annotations

from dse.core.inspection.rule_check import obstacle
from dse.core.legal_set.size_estimate import CONFIDENCE, Estimate
from dse.core.space import Space
from dse.report.schemas.space import Counted, EstimateFacts


def count_json(space: Space, file: str) -> Counted:
    """Return the count of the legal designs or, where there is none, its estimate.

    Args:
        space: the space.
        file: how its file was named.
    """
    designs = space.count()
    estimate = space.estimate() if designs is None else None
    return {
        "file": file,
        "designs": designs,
        "exact": designs is not None,
        "estimate": None if estimate is None else estimate_json(estimate),
        "reason": obstacle(space),
    }


def estimate_json(estimate: Estimate) -> EstimateFacts:
    """Return an estimate of a count with its interval, its bound and its draws."""
    return {
        "designs": estimate.count,
        "low": estimate.low,
        "high": estimate.high,
        "confidence": CONFIDENCE,
        "at_most": estimate.at_most,
        "draws": estimate.draws,
        "legal": estimate.hits,
    }
