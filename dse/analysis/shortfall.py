"""Regression gate for CI: groups whose hypervolume is too far below that of the first group."""

from __future__ import annotations

from math import isclose

from dse.analysis.comparison import ComparisonResult
from dse.analysis.conclusions import Conclusion
from dse.analysis.significance import LEVEL
from dse.core.expressions.operators import AGREEMENT


def shortfalls(comparison: ComparisonResult, share: float) -> list[str]:
    """Return a sentence for each group whose hypervolume is too far below that of the first.

    Medians are compared, and only significant differences count. If the number of seeds is too
    small for any difference to be significant, as for single studies, the medians alone decide.

    Args:
        comparison: a comparison that includes hypervolume; the first group is the baseline.
        share: allowed deficit, as a share of the baseline's hypervolume.
    """
    first, *others = comparison.groups
    wanted = first.quartiles("hypervolume")[1]
    told = {
        claim.second: claim
        for claim in comparison.claims
        if claim.first == first.name and claim.indicator == "hypervolume"
    }
    sentences = []
    for group in others:
        found = group.quartiles("hypervolume")[1]
        least = (1 - share) * wanted
        short = found < least and not isclose(found, least, rel_tol=AGREEMENT)
        if short and _counts(told[group.name], len(comparison.claims)):
            missing = 1 - found / wanted
            sentences.append(
                f"{group.name} falls short of {first.name}: {missing:.1%} less hypervolume, "
                f"where {share:.1%} is allowed"
            )
    return sentences


def _counts(claim: Conclusion, family: int) -> bool:
    """Return whether a difference is significant, or the runs are too few for any to be so."""
    return claim.better == claim.first or claim.least * family > LEVEL
