"""JSON schemas of ``dse evaluate`` (one design) and ``dse verify`` (replay of the optimizer)."""

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


class MismatchFacts(Shape):
    """First recorded trial that replaying the optimizer does not reproduce."""

    trial: int
    """Its number."""
    reason: str
    """The reason why it is not reproduced."""
    expected: Design | None
    """The design that the optimizer asks for; null where it asks for none."""
    found: Design | None
    """The design that the record has; null where it has none."""
    versions: dict[str, tuple[str, str]]
    """The components whose version differs: the version when the study ran, and the present one."""


class SampleFacts(Shape):
    """Size of a sampled replay: the optimizer calls (asks) and trials that it leaves out."""

    seed: int
    """The seed with which the asks were drawn."""
    skipped_asks: int
    """How many asks were not replayed."""
    skipped_trials: int
    """How many trials these asks produced."""
    miss_probability: float
    """The probability that a single changed ask is not among those that were replayed."""


class ProofFacts(Shape):
    """Result of replaying a study's optimizer against its recorded trials."""

    study: str
    """The study's name."""
    proved: bool
    """Whether every trial was proved."""
    asks: int
    """How many asks were replayed."""
    trials: int
    """How many trials were proved."""
    carried: int
    """How many came from another study and are not replayed."""
    attached: int
    """How many have results that the user attached, and are not replayed."""
    unknown: int
    """How many have no ask in the record: added by hand, or by another program."""
    salvaged: int
    """How many asks depended on rows that are now lost, because the study was salvaged."""
    sample: SampleFacts | None
    """What the sample left out; null where all asks were replayed."""
    mismatch: MismatchFacts | None
    """The first trial that is not reproduced; null where all are."""
