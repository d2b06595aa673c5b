"""``dse compare`` and ``dse sweep``: studies of one question side by side."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape
from dse.report.schemas.trials import ObjectiveFacts

Currency = Literal["measurements", "trials", "seconds", "cost"]
Indicator = Literal["hypervolume", "igd+", "epsilon", "r2"]


class Quartiles(Shape):
    """Quartiles over the studies of a group; null where no front gives a distance."""

    low: float | None
    """The lower quartile."""
    median: float | None
    """The median."""
    high: float | None
    """The upper quartile."""


class Curve(Shape):
    """The quartiles at each budget of a grid; null before the first front."""

    low: list[float | None]
    """The lower quartiles."""
    median: list[float | None]
    """The medians."""
    high: list[float | None]
    """The upper quartiles."""


class Reached(Shape):
    """Cost of reaching a share of the best final hypervolume."""

    median: float | None
    """The median over the studies; null where most never reached it."""
    reached: int
    """How many studies ever did."""


class SurfaceFacts(Shape):
    """Region that so many studies of a group attain together."""

    studies: int
    """So many studies or more."""
    points: list[list[float]]
    """The corners of the boundary, in the objectives' order, units and signs."""


class ComparedStudy(Shape):
    """One study of a group."""

    study: str
    """Its name."""
    seed: int
    """Its seed."""
    trials: int
    """How many trials have finished."""
    spent: dict[Currency, float]
    """What it spent in all, by currency: seconds, dollars, or a number of them."""
    front: int
    """How many designs are on its front."""
    share_of_joint_front: float
    """The part of the joint front that it found."""
    at: dict[Indicator, float | None]
    """Its indicators at the budget of the comparison."""
    final: dict[Indicator, float | None]
    """Its indicators at its end."""
    to: dict[Currency, dict[str, float | None]]
    """What reaching 0.9, 0.95 and 0.99 of the best final hypervolume took; null: never reached."""


class ComparedGroup(Shape):
    """Studies that differ in their seed, or a single one."""

    name: str
    """Its name."""
    at: dict[Indicator, Quartiles]
    """The indicators at the budget of the comparison."""
    curves: dict[Currency, dict[Indicator, Curve]]
    """The indicators along `grids`."""
    to: dict[Currency, dict[str, Reached]]
    """What reaching 0.9, 0.95 and 0.99 of the best final hypervolume took."""
    attainment: list[SurfaceFacts]
    """What any, half and all of its studies attain; of two or three objectives alone."""
    studies: list[ComparedStudy]
    """Its studies."""


class ClaimFacts(Shape):
    """Two groups by one indicator."""

    indicator: Indicator
    """The indicator."""
    first: str
    """The one group."""
    second: str
    """The other."""
    studies: list[int]
    """How many studies each has."""
    test: Literal["wilcoxon", "mann-whitney"]
    """By ranks of pairs with the same seed, or of all."""
    difference: float | None
    """The first's median less the second's; null where one has none."""
    interval: list[float] | None
    """Where the difference lies with 95 %; null where that cannot be told."""
    a12: float
    """The chance that a study of the first does better than one of the second."""
    p: float
    """The test's p."""
    p_holm: float
    """The same, corrected for all claims of the comparison."""
    least_p: float
    """The smallest p that so many studies can come to."""
    claimed: bool
    """Whether a difference is claimed."""
    better: str | None
    """The group that does better; null where nothing is claimed."""


class ComparisonFacts(Shape):
    """Groups of studies of one question, at one budget."""

    objectives: list[ObjectiveFacts]
    """What all of them ask."""
    reference_point: list[float]
    """From where hypervolumes are counted, in the objectives' order, units and signs."""
    reference_from: str
    """Where that comes from: the studies, or the joint nadir."""
    joint_front: int
    """How many designs are on the front of all studies together."""
    over: Currency
    """What is spent."""
    at: float
    """After how much of it the groups are compared."""
    groups: list[ComparedGroup]
    """The groups, in the order in which they were named."""
    claims: list[ClaimFacts]
    """Every pair of groups by every indicator."""
    verdicts: list[str]
    """What is claimed, in words."""
    grids: dict[Currency, list[float]]
    """The budgets along which curves are told, by currency."""
