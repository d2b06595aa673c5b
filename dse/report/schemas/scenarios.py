"""JSON schema of the best trials under each scenario, a part of ``dse front``."""

from __future__ import annotations

from dse.report.schemas.base import Goal, Shape


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
