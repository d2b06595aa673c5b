"""JSON schema of ``dse evaluate``: the outcome of one design."""

from __future__ import annotations

from dse.report.schemas.base import Design, Shape, State


class MetricFacts(Shape):
    """Value of one metric of an evaluated design."""

    value: float | None
    """Its value; for a metric with labels, the index of the label, from 0."""
    unit: str
    """The unit of the value; empty where it has none."""
    spread: float | None
    """Its standard error in the same unit; null where none is known."""
    word: str | None
    """The label of the value; null for a numeric metric."""


class Evaluated(Shape):
    """Metrics or fault of a design that was evaluated without a study."""

    design: Design
    """Its value for each parameter that is active."""
    state: State
    """Whether it is done, cannot exist, or could not be measured."""
    reason: str | None
    """Why it has no metrics; null where nothing is wrong."""
    metrics: dict[str, MetricFacts]
    """Its metrics by name."""
    broken_limits: list[str]
    """The limits of the study that it breaks."""
    cost_s: float | None
    """Seconds that the evaluation took."""
