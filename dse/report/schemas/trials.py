"""``dse trials``: every trial with all that it came to."""

from __future__ import annotations

from dse.report.schemas.base import Design, FaultKind, Goal, Shape, State


class ObjectiveFacts(Shape):
    """An objective of a study."""

    name: str
    """What people are shown: its label, or the expression."""
    expression: str
    """The expression over metrics, as the study file has it."""
    goal: Goal
    """Which way is better."""
    unit: str
    """The unit of its values; empty where it has none."""


class FaultFacts(Shape):
    """Reason for the missing metrics of a trial."""

    kind: FaultKind
    """`infeasible`: the design cannot exist; all else: it could not be measured."""
    reason: str
    """The same in words."""


class TrialRow(Shape):
    """One trial."""

    trial: int
    """Its number, from 0, in the order in which the designs were asked for."""
    state: State
    """How far it is; `done` alone has all metrics, `outside` is no design of the present space."""
    design: Design
    """Its value for each parameter that is active."""
    metrics: dict[str, float | None]
    """Each metric that is known, in the unit that `metrics` at the top tells; of a trial that is
    done null where it is undefined."""
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
    """How many measured evaluators ran for it; what was known already counts for nothing."""
    told: int
    """How many finished trials the optimizer knew when it asked for it."""
    attempts: int
    """How often it was given up and issued again."""
    asked_at: float | None
    """When it was asked, in seconds since 1970 (UTC); null where that is not known."""
    begun_at: float | None
    """When its last attempt was begun, as `asked_at`."""
    finished_at: float | None
    """When its evaluation ended, as `asked_at`."""


class Trials(Shape):
    """All trials of a study."""

    study: str
    """The study's name."""
    objectives: list[ObjectiveFacts]
    """What is asked; rows have their values in this order."""
    limits: list[str]
    """What designs have to keep, as the study file has it."""
    metrics: dict[str, str]
    """The unit of each metric, empty where it has none."""
    words: dict[str, list[str]]
    """What the values 0, 1, 2 ... of a metric of words stand for; all others have no key."""
    parameters: dict[str, str]
    """The unit of each parameter, empty where it has none."""
    trials: list[TrialRow]
    """The trials, by number."""
