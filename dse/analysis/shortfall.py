"""Groups that fall short of the first one by more than is allowed: a gate for CI."""

from __future__ import annotations

from math import isclose

from dse.analysis.comparison import ComparisonResult
from dse.analysis.conclusions import Conclusion
from dse.analysis.significance import LEVEL
from dse.core.expressions.operators import AGREEMENT


def shortfalls(comparison: ComparisonResult, share: float) -> list[str]:
    """A sentence for each group whose hypervolume is too far below the first one's.

    Single studies are judged by their numbers. Groups are judged by their medians, and only where
    the difference can be claimed; with too few seeds to ever claim one, by their medians alone.

    Args:
        comparison: the first group is the one to hold on to; claims about hypervolume are made.
        share: how much of the first one's hypervolume may be missing.
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
    """Return whether the difference exceeds chance, or chance could never be ruled out."""
    return claim.better == claim.first or claim.least * family > LEVEL
