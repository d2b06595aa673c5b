"""Changes of the winner between scenarios: a part of ``dse front``."""

from __future__ import annotations

from dse.report.schemas.base import Goal, Shape


class StandingFacts(Shape):
    """An objective under one scenario."""

    scenario: str
    """The scenario's name."""
    winner: int
    """The trial that is best there."""
    value: float | None
    """The objective of the winner there, in the objective's unit."""
    chosen_value: float | None
    """The objective of the study's own winner there; null where it is no answer there."""
    behind: float | None
    """How much worse that one is, as a share of the winner's value; null where that is zero."""


class ContestFacts(Shape):
    """An objective that differs between scenarios."""

    expression: str
    """The expression over metrics, as the study file has it."""
    goal: Goal
    """Which way is better."""
    unit: str
    """The unit of its values; empty where it has none."""
    trial: int | None
    """The trial that wins it over all scenarios; null where none is an answer."""
    changes: bool
    """Whether different trials win it under different scenarios."""
    scenarios: list[StandingFacts]
    """Who wins it under each scenario."""


class ContrastFacts(Shape):
    """Choices of each scenario alone."""

    weights: dict[str, float]
    """The weight of each scenario; they sum to 1."""
    fronts: dict[str, list[int]]
    """The trials that are on the front of each scenario alone."""
    under_every: list[int]
    """The trials that are on the front of every scenario."""
    objectives: list[ContestFacts]
    """The objectives that differ between scenarios."""
