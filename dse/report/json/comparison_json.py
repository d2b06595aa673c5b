"""JSON of a comparison, with a stable schema and only finite numbers.

``null`` marks a hypervolume level that was never reached, and an indicator of a study without a
front. Curves and attained points are in the objectives' own units and signs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.analysis.attainment import Surface, surfaces
from dse.analysis.comparison import SHARES, ComparisonResult, GroupResult, Result
from dse.analysis.conclusions import Conclusion
from dse.analysis.curves import Curves, curves
from dse.analysis.references import INDICATORS
from dse.core.values import Floats
from dse.report.json.front_json import finite, objectives_json
from dse.report.schemas.comparison_schema import (
    ClaimFacts,
    ComparedGroup,
    ComparedStudy,
    ComparisonFacts,
    Curve,
    Indicator,
    Quartiles,
    Reached,
    SurfaceFacts,
)
from dse.report.text.conclusion_sentences import verdicts

ATTAINED_OBJECTIVES = (2, 3)
"""Numbers of objectives for which attainment surfaces are computed."""


def comparison_json(comparison: ComparisonResult) -> ComparisonFacts:
    """Return a comparison of studies as a JSON object."""
    drawn = curves(comparison)
    return {
        "objectives": objectives_json(comparison.objectives),
        "reference_point": list(comparison.reference_point),
        "reference_from": comparison.reference_from,
        "ideal_point": _ideal_point(comparison),
        "joint_front": len(comparison.yardstick.joint),
        "over": comparison.over,
        "at": comparison.at,
        "groups": [
            _group(comparison, place, group, drawn) for place, group in enumerate(comparison.groups)
        ],
        "claims": [_claim(claim) for claim in comparison.claims],
        "verdicts": verdicts(comparison),
        "grids": {one.currency: one.grid.tolist() for one in drawn},
    }


def _group(
    comparison: ComparisonResult, place: int, group: GroupResult, drawn: Sequence[Curves]
) -> ComparedGroup:
    return {
        "name": group.name,
        "at": {name: _quartiles(*map(finite, group.quartiles(name))) for name in INDICATORS},
        "hypervolume_share": _quartiles(
            *map(comparison.yardstick.share, group.quartiles("hypervolume"))
        ),
        "curves": {one.currency: _curves(one, place) for one in drawn},
        "to": {
            currency: {
                f"{share:g}": _describe_reach(*group.to(currency, at))
                for at, share in enumerate(SHARES)
            }
            for currency in comparison.currencies
        },
        "attainment": [_surface(comparison, one) for one in _surfaces(comparison, place)],
        "studies": [_result(comparison, result) for result in group.results],
    }


def _quartiles(low: float | None, median: float | None, high: float | None) -> Quartiles:
    return {"low": low, "median": median, "high": high}


def _describe_reach(median: float | None, reached: int) -> Reached:
    return {"median": median, "reached": reached}


def _curves(curves: Curves, place: int) -> dict[Indicator, Curve]:
    return {name: _curve(curves.quartiles(place, name)) for name in INDICATORS}


def _curve(quartiles: Floats) -> Curve:
    low, median, high = ([finite(value) for value in row] for row in quartiles.tolist())
    return {"low": low, "median": median, "high": high}


def _surfaces(comparison: ComparisonResult, place: int) -> list[Surface]:
    if len(comparison.objectives) not in ATTAINED_OBJECTIVES:
        return []
    return surfaces([course.final for course in comparison.courses[place]])


def _surface(comparison: ComparisonResult, surface: Surface) -> SurfaceFacts:
    rows: Floats = surface.losses * np.array([o.sign for o in comparison.objectives])
    return {"studies": surface.runs, "points": rows.tolist()}


def _ideal_point(comparison: ComparisonResult) -> list[float] | None:
    """Return the best value of each objective in any study; ``None`` without a joint front."""
    joint = comparison.yardstick.joint
    if not len(joint):
        return None
    best = zip(comparison.objectives, joint.min(axis=0).tolist(), strict=True)
    return [objective.sign * loss for objective, loss in best]


def _result(comparison: ComparisonResult, result: Result) -> ComparedStudy:
    return {
        "study": result.name,
        "seed": result.seed,
        "trials": result.trials,
        "spent": dict(result.totals),
        "front": result.front,
        "share_of_joint_front": result.share,
        "at": {name: finite(value) for name, value in result.values.items()},
        "final": {name: finite(value) for name, value in result.final.items()},
        "hypervolume_share": comparison.yardstick.share(result.values["hypervolume"]),
        "final_hypervolume_share": comparison.yardstick.share(result.final["hypervolume"]),
        "to": {
            currency: {f"{share:g}": value for share, value in zip(SHARES, spent, strict=True)}
            for currency, spent in result.to.items()
        },
    }


def _claim(claim: Conclusion) -> ClaimFacts:
    return {
        "indicator": claim.indicator,
        "first": claim.first,
        "second": claim.second,
        "studies": list(claim.runs),
        "test": "wilcoxon" if claim.paired else "mann-whitney",
        "difference": claim.difference,
        "interval": None if claim.interval is None else list(claim.interval),
        "a12": claim.superiority,
        "p": claim.chance,
        "p_holm": claim.corrected,
        "least_p": claim.least,
        "claimed": claim.made,
        "better": claim.better,
    }
