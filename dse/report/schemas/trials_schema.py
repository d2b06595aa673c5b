"""JSON schema of ``dse trials``: every trial with its outcome."""

from __future__ import annotations

from dse.report.schemas.base import Design, FailureKind, Goal, Shape, State


class ObjectiveFacts(Shape):
    """Objective of a study."""

    name: str
    """Its display name: the label, or the expression."""
    expression: str
    """The expression over metrics, as the study file has it."""
    goal: Goal
    """The direction of the optimization."""
    unit: str
    """The unit of its values; empty where it has none."""


class FaultFacts(Shape):
    """Reason why a trial has no metrics."""

    kind: FailureKind
    """`infeasible`: the design cannot exist; any other kind: it could not be measured."""
    reason: str
    """The reason as text."""


class TrialRow(Shape):
    """Trial: its design, metrics, state, cost and times."""

    trial: int
    """Its number, from 0, in the order in which the designs were asked for."""
    state: State
    """Its state; only `done` has all metrics, `outside` is no design of the present space."""
    design: Design
    """Its value for each parameter that is active."""
    metrics: dict[str, float | None]
    """Each known metric, in the unit given by the top-level `metrics`; null where it is undefined
    in a trial that is done."""
    spread: dict[str, float | None]
    """The standard error of each metric that has one, in the metric's unit."""
    objectives: list[float | None]
    """The objectives in their order, units and signs; null where a metric is unknown."""
    feasible: bool
    """Whether it is done and keeps every limit."""
    broken: dict[str, float]
    """Each limit that it breaks, and by how much: as a share of the bound where that is a number,
    else in SI units."""
    fault: FaultFacts | None
    """Why it has no metrics; null where nothing is wrong."""
    cost_s: float | None
    """Seconds that its evaluation took."""
    measured: int
    """How many measuring evaluators ran for it; reused measurements do not count."""
    told: int
    """How many finished trials the optimizer had seen when it asked for it."""
    attempts: int
    """How often it was abandoned and issued again."""
    asked_at: float | None
    """When it was asked, in seconds since 1970 (UTC); null where that is not known."""
    begun_at: float | None
    """When its last attempt began, as `asked_at`."""
    finished_at: float | None
    """When its evaluation ended, as `asked_at`."""


class HeadingFacts(Shape):
    """Study that the rows belong to, with the units of the values in the rows."""

    study: str
    """The study's name."""
    objectives: list[ObjectiveFacts]
    """The objectives; rows have their values in this order."""
    limits: list[str]
    """The limits that designs have to keep, as written in the study file."""
    metrics: dict[str, str]
    """The unit of each metric, empty where it has none."""
    words: dict[str, list[str]]
    """The labels of the values 0, 1, 2 ... of a metric; metrics without labels have no key."""
    parameters: dict[str, str]
    """The unit of each parameter, empty where it has none."""


class TrialsFacts(HeadingFacts):
    """All trials of a study."""

    trials: list[TrialRow]
    """The trials, by number."""
