"""Size of a space as JSON: an exact count, or an estimate with its confidence interval."""

from __future__ import annotations

from dse.core.inspection.rule_check import obstacle
from dse.core.legal_set.size_estimate import CONFIDENCE, Estimate
from dse.core.space import DesignSpace
from dse.report.schemas.space_schema import Counted, EstimateFacts


def count_json(space: DesignSpace, file: str) -> Counted:
    """Return the exact count of legal designs or, if they are not countable, an estimate.

    Args:
        space: the space.
        file: name of its file, as the user gave it.
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
    """Return an estimate of the number of legal designs as JSON, with its confidence interval.

    The JSON also has an upper bound, and the number of random draws of the estimate.
    """
    return {
        "designs": estimate.count,
        "low": estimate.low,
        "high": estimate.high,
        "confidence": CONFIDENCE,
        "at_most": estimate.at_most,
        "draws": estimate.draws,
        "legal": estimate.hits,
    }
