"""JSON schema of ``dse effects``: main effects and interactions of the parameters."""

from __future__ import annotations

from dse.report.schemas.base import Plain, Shape


class LevelFacts(Shape):
    """Level of a parameter: one value, or a group of adjacent values."""

    value: Plain | None
    """The value, or the smallest of the group; null where the parameter is inactive."""
    to: Plain | None
    """The largest of the group; equal to `value` for a single value."""
    mean: float | None
    """The metric's mean over the trials at this level, adjusted for the other parameters."""
    trials: int
    """How many trials have this level."""


class EffectFacts(Shape):
    """Main effect of one parameter on a metric."""

    parameter: str
    """The parameter."""
    share: float | None
    """The share of the variance that it alone explains; null where that is unknown."""
    span: float | None
    """The difference of the highest and the lowest level mean, in the metric's unit."""
    levels: list[LevelFacts]
    """Its levels."""


class InteractionFacts(Shape):
    """Interaction of two parameters: their joint effect on a metric beyond their main effects."""

    parameters: list[str]
    """The two parameters."""
    share: float | None
    """The share of the variance that they alone explain; null where that is unknown."""


class MetricEffects(Shape):
    """Main effects and interactions of all parameters on one metric."""

    metric: str
    """The metric, or the objective."""
    unit: str
    """Its unit; empty where it has none."""
    trials: int
    """How many trials the effects are estimated from."""
    of: int
    """How many trials have the metric; more than `trials` where a sample was drawn."""
    seed: int | None
    """The seed of the sample; null where all trials are used."""
    left_out: list[str]
    """Parameters without effects because they have too many values."""
    unpaired: list[str]
    """Parameters without interactions because they have too many values."""
    mean: float | None
    """Its mean, in its unit."""
    standard_deviation: float | None
    """Its standard deviation, in its unit."""
    additive_share: float | None
    """The share of the variance that all main effects explain together."""
    main: list[EffectFacts]
    """The effect of each parameter, the largest first."""
    interactions: list[InteractionFacts]
    """The interactions of pairs of parameters, the largest first."""


class EffectsFacts(Shape):
    """Effects of the parameters on the requested metrics of a study."""

    study: str
    """The study's name."""
    parameters: dict[str, str]
    """The unit of each parameter, empty where it has none."""
    effects: list[MetricEffects]
    """The effects on each requested metric."""
