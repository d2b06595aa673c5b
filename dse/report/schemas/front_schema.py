"""JSON schema of ``dse front``: the non-dominated designs of a study."""

from __future__ import annotations

from typing import NotRequired

from dse.report.schemas.base import Design, Goal, Shape
from dse.report.schemas.trials_schema import HeadingFacts, ObjectiveFacts


class StandingFacts(Shape):
    """Best trial of an objective under one scenario, compared with the best over all scenarios."""

    scenario: str
    """The scenario's name."""
    winner: int
    """The trial that is best there."""
    value: float | None
    """The winner's value of the objective there, in the objective's unit."""
    chosen_value: float | None
    """The value there of the winner over all scenarios; null where it is not eligible there."""
    behind: float | None
    """How much worse `chosen_value` is, as a share of `value`; null where `value` is zero."""


class ContestFacts(Shape):
    """Objective whose value depends on the scenario, with its best trial under each."""

    expression: str
    """The expression over metrics, as the study file has it."""
    goal: Goal
    """The direction of the optimization."""
    unit: str
    """The unit of its values; empty where it has none."""
    trial: int | None
    """The winner over all scenarios; null where no trial is eligible."""
    changes: bool
    """Whether different trials win it under different scenarios."""
    scenarios: list[StandingFacts]
    """The winner under each scenario."""


class ContrastFacts(Shape):
    """Best trials and front of each scenario if it were the only one."""

    weights: dict[str, float]
    """The weight of each scenario; they sum to 1."""
    fronts: dict[str, list[int]]
    """The trials that are on the front of each scenario alone."""
    under_every: list[int]
    """The trials that are on the front of every scenario."""
    objectives: list[ContestFacts]
    """The objectives that differ between scenarios."""


class JudgedFacts(Shape):
    """Result of a design of the front on the test split, which the search does not use."""

    objectives: list[float | None]
    """The objectives on the test split, in their order, units and signs; empty with a fault."""
    stderr: list[float | None]
    """Their standard errors; 0 for objectives that do not depend on the test split, null where
    unknown."""
    feasible: bool
    """Whether it keeps every limit on the test split."""
    alike: list[int]
    """The other trials of the front that differ by at most two standard errors of the difference,
    in each objective that depends on the test split."""
    fault: str
    """Why it could not be measured; empty if it was."""


class IntervalFacts(Shape):
    """Errors of a design's modelled objectives, as their models state them."""

    width: list[float | None]
    """Half of the interval of each objective, as a share of its value: two standard errors; 0 for
    an objective without an error of a model, null where unknown."""
    origin: list[str]
    """Where each error was measured: `held out`, `extrapolated` (on the nearest group) or `data
    sheet only`; empty for an objective without an error of a model."""
    groups: list[str]
    """The groups of measurements that show the errors."""
    alike: list[int]
    """The other trials of the front that differ by at most two standard errors of the difference,
    in each objective that has an error of a model."""


class FrontRow(Shape):
    """Design on the front or, where no design is feasible, one of those nearest to feasibility."""

    trial: int
    """The number of its trial."""
    design: Design
    """Its value for each parameter that is active."""
    metrics: dict[str, float | None]
    """Each metric, in the unit given by the top-level `metrics`; null where it is undefined."""
    spread: dict[str, float | None]
    """The standard error of each metric that has one, in the metric's unit."""
    objectives: list[float | None]
    """The objectives in their order, units and signs."""
    feasible: bool
    """Whether it keeps every limit."""
    broken: dict[str, float]
    """Each limit that it breaks, and by how much: as a share of the bound where that is a number,
    else in SI units."""
    test: NotRequired[JudgedFacts | None]
    """Its result on the test split; null where it was not measured there. Without it where no
    design of the front was."""
    model_error: NotRequired[IntervalFacts | None]
    """The errors of its modelled objectives, on measurements that the models were not fitted to.
    Without it where no model states its errors."""


class RungFacts(Shape):
    """Reliability of a cheap fidelity of a metric as a substitute for the highest fidelity."""

    metric: str
    """The metric at the top of the ladder."""
    rung: str
    """The cheaper metric that approximates it."""
    designs: int
    """How many designs have both."""
    kendall_tau: float | None
    """Kendall's rank correlation of the two; null where too few designs have both."""
    error: float | None
    """The root mean square error of the uncalibrated rung, in the metric's unit."""
    held_out_error: float | None
    """The same error after calibration, on held-out designs."""
    calibration: str
    """How the rung is calibrated."""


class CoverageFacts(Shape):
    """Whether a front is proved exact, and the number of designs without a value."""

    exact: bool
    """Whether every legal design was taken into account, and none of them failed."""
    exact_over: int | None
    """How many legal designs with values the front is exact over; null where it is not proved, or
    they were not counted."""
    failed: int
    """How many designs have no value, because an evaluator failed or an objective or limit is
    undefined: of all legal ones where all were searched, else of the finished trials."""
    failure: str
    """That count with one of these designs and the reason; empty where none failed."""


class GapFacts(Shape):
    """Upper bound on the share of the hypervolume that the front may still miss."""

    share: float
    """The bound, from 0 to 1, as a share of the largest hypervolume that is still plausible."""
    confidence: float
    """The probability with which the bound holds; 1 for an exact front."""
    measurements: int
    """The number of measurements from which it was estimated; 0 for an exact front."""
    undecided: int
    """How many designs may still enter the front."""
    designs: int
    """How many designs were considered."""
    sampled: bool
    """Whether these are a sample, and not all legal designs."""
    points: list[list[float]]
    """Optimistic objective values of undecided designs, in the objectives' order, units and signs;
    of many, an even selection."""
    found: float | None
    """The volume that the front dominates, as a share of that between reference point and ideal
    point; null with a single objective, for an exact front and in records of earlier versions."""
    optimistic: float | None
    """The volume of the front together with all optimistic values, as a share of the same volume;
    above 1 if these extend far beyond the ideal point."""


class FrontFacts(HeadingFacts, CoverageFacts):
    """The front of a study, or the nearest misses (least violations) where none is feasible."""

    reference_point: list[float | None] | None
    """The reference point of the hypervolume, in the objectives' order, units and signs; null where
    none is stated and none can be derived from the trials."""
    hypervolume: float | None
    """The volume that the front dominates, in the product of the objectives' units; null without a
    reference point."""
    hypervolume_share: float | None
    """The hypervolume as a share, from 0 to 1, of the volume between the reference point and the
    ideal point, which has the best value of each objective on the front; null as `hypervolume`, and
    with a single objective."""
    hypervolume_estimated: bool
    """Whether the hypervolume is an estimate, as it is for many designs of many objectives."""
    feasible: bool
    """Whether any design keeps all limits; where none does, `front` holds the nearest misses."""
    knee: int | None
    """The trial at the knee, beyond which one objective costs much of another; null without."""
    front: list[FrontRow]
    """The designs."""
    gap: NotRequired[GapFacts | None]
    """The bound on what the front may still miss; null while it is unknown. Without it where the
    designs were selected by `--at` or `--best`."""
    at: NotRequired[list[str]]
    """The further limits of the options `--at`, which `limits` has too; present with `--at` or
    `--best`."""
    best: NotRequired[ObjectiveFacts | None]
    """What the designs are the best by, from the option `--best`; null for the front under the
    limits of `--at`."""
    best_value: NotRequired[float | None]
    """The value of `best` for these designs, in its unit; null where no design satisfies every
    limit."""
    scenarios: NotRequired[ContrastFacts]
    """What each scenario alone would choose; present if the study has scenarios."""
    membership: NotRequired[dict[str, float]]
    """The probability that each trial is on the front, by its number; present if metrics have a
    standard error."""
    fidelities: NotRequired[list[RungFacts]]
    """The reliability of the lower rungs; present if the study has fidelity ladders."""
