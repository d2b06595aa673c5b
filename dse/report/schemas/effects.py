"""``dse effects``: what each parameter does to a metric."""

from __future__ import annotations

from dse.report.schemas.base import Plain, Shape


class LevelFacts(Shape):
    """One value of a parameter, or a group of values that lie together."""

    value: Plain | None
    """The value, or the least of the group; null where the parameter is absent."""
    to: Plain | None
    """The greatest of the group; the value itself where it is one."""
    mean: float | None
    """The metric's mean over the trials that have it, adjusted for what the others have."""
    trials: int
    """How many trials have it."""


class EffectFacts(Shape):
    """Effect of one parameter on its own."""

    parameter: str
    """The parameter."""
    share: float | None
    """The part of the variance that goes with it and nothing else; null where none can tell."""
    span: float | None
    """From the lowest to the highest level's mean, in the metric's unit."""
    levels: list[LevelFacts]
    """Its values."""


class InteractionFacts(Shape):
    """Joint effect of two parameters beyond the effect of each."""

    parameters: list[str]
    """The two."""
    share: float | None
    """The part of the variance that goes with them and nothing else; null where none can tell."""


class MetricEffects(Shape):
    """One metric."""

    metric: str
    """The metric, or the objective."""
    unit: str
    """Its unit; empty where it has none."""
    trials: int
    """Over how many trials."""
    of: int
    """How many trials have the metric; more than `trials` where a sample was drawn."""
    seed: int | None
    """The seed by which the sample was drawn; null where all trials count."""
    left_out: list[str]
    """Parameters of so many values that nothing is told of them."""
    unpaired: list[str]
    """Parameters of so many values that they are in no interaction."""
    mean: float | None
    """Its mean, in its unit."""
    standard_deviation: float | None
    """Its standard deviation, in its unit."""
    additive_share: float | None
    """The share of the variance that all main effects explain together."""
    main: list[EffectFacts]
    """Each parameter, the largest effect first."""
    interactions: list[InteractionFacts]
    """Pairs of parameters, the largest effect first."""


class EffectsFacts(Shape):
    """Effects of each parameter on each metric."""

    study: str
    """The study's name."""
    parameters: dict[str, str]
    """The unit of each parameter, empty where it has none."""
    effects: list[MetricEffects]
    """The metrics that were asked for."""
