"""JSON schemas of ``dse compare`` and ``dse sweep``: comparisons of studies of one problem."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape
from dse.report.schemas.trials_schema import ObjectiveFacts

Currency = Literal["measurements", "trials", "seconds", "cost"]
Indicator = Literal["hypervolume", "igd+", "epsilon", "r2"]


class Quartiles(Shape):
    """Quartiles of an indicator over a group's studies; null where a study has no front yet."""

    low: float | None
    """The lower quartile."""
    median: float | None
    """The median."""
    high: float | None
    """The upper quartile."""


class Curve(Shape):
    """Quartiles of an indicator at each budget in `grids`; null before the first front."""

    low: list[float | None]
    """The lower quartiles."""
    median: list[float | None]
    """The medians."""
    high: list[float | None]
    """The upper quartiles."""


class Reached(Shape):
    """Budget that a group's studies needed to reach a share of the best final hypervolume."""

    median: float | None
    """The median over the studies; null where most never reached it."""
    reached: int
    """How many studies ever reached it."""


class SurfaceFacts(Shape):
    """Attainment surface: the region that at least a given number of a group's studies attain."""

    studies: int
    """The minimum number of studies that attain it."""
    points: list[list[float]]
    """The corners of the boundary, in the objectives' order, units and signs."""


class ComparedStudy(Shape):
    """Result of one study in a comparison."""

    study: str
    """Its name."""
    seed: int
    """Its seed."""
    trials: int
    """How many trials have finished."""
    spent: dict[Currency, float]
    """The total spent, by currency: seconds, dollars, or a number of measurements or trials."""
    front: int
    """How many designs are on its front."""
    share_of_joint_front: float
    """The share of the joint front that it found."""
    at: dict[Indicator, float | None]
    """Its indicators at the budget of the comparison."""
    final: dict[Indicator, float | None]
    """Its indicators at its end."""
    hypervolume_share: float
    """Its hypervolume at that budget as a share, from 0 to 1, of the volume between the reference
    point and `ideal_point`."""
    final_hypervolume_share: float
    """The same share at its end."""
    to: dict[Currency, dict[str, float | None]]
    """Amount spent to reach 0.9, 0.95 and 0.99 of the best final hypervolume; null: never."""


class ComparedGroup(Shape):
    """Group in a comparison: studies that differ only in their seed, or a single study."""

    name: str
    """Its name."""
    at: dict[Indicator, Quartiles]
    """The indicators at the budget of the comparison."""
    hypervolume_share: Quartiles
    """The hypervolume at that budget as a share, from 0 to 1, of the volume between the reference
    point and `ideal_point`."""
    curves: dict[Currency, dict[Indicator, Curve]]
    """The indicators along `grids`."""
    to: dict[Currency, dict[str, Reached]]
    """Amount spent to reach 0.9, 0.95 and 0.99 of the best final hypervolume."""
    attainment: list[SurfaceFacts]
    """What any, half and all of its studies attain; only for two or three objectives."""
    studies: list[ComparedStudy]
    """Its studies."""


class ClaimFacts(Shape):
    """Test of whether two groups of studies differ in one indicator, with effect size."""

    indicator: Indicator
    """The indicator."""
    first: str
    """The first group."""
    second: str
    """The second group."""
    studies: list[int]
    """How many studies each group has."""
    test: Literal["wilcoxon", "mann-whitney"]
    """The rank test: `wilcoxon` for pairs with the same seed, `mann-whitney` for all studies."""
    difference: float | None
    """The first group's median minus the second's; null where one has none."""
    interval: list[float] | None
    """The 95 % confidence interval of the difference; null where it cannot be computed."""
    a12: float
    """The probability that a study of the first group does better than one of the second."""
    p: float
    """The p-value of the test."""
    p_holm: float
    """The p-value after Holm's correction over all claims of the comparison."""
    least_p: float
    """The smallest p-value that is possible with these numbers of studies."""
    claimed: bool
    """Whether a difference is claimed."""
    better: str | None
    """The group that does better; null where nothing is claimed."""


class ComparisonFacts(Shape):
    """Comparison of groups of studies with the same objectives, at one budget."""

    objectives: list[ObjectiveFacts]
    """The objectives of all studies."""
    reference_point: list[float]
    """The reference point of the hypervolume, in the objectives' order, units and signs."""
    reference_from: str
    """The origin of the reference point: the studies, or the joint nadir."""
    ideal_point: list[float] | None
    """The best value of each objective in any of the studies, in the objectives' order, units and
    signs; null where no study has a front."""
    joint_front: int
    """How many designs are on the front of all studies together."""
    over: Currency
    """The currency of the budget."""
    at: float
    """The budget at which the groups are compared."""
    groups: list[ComparedGroup]
    """The groups, in the order in which they were named."""
    claims: list[ClaimFacts]
    """One entry for each pair of groups and each indicator."""
    verdicts: list[str]
    """The conclusions as sentences."""
    grids: dict[Currency, list[float]]
    """The budgets at which the curves are given, by currency."""
