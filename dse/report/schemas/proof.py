"""JSON schema of ``dse verify``: whether a replay reproduces the recorded trials."""

from __future__ import annotations

from dse.report.schemas.base import Design, Shape


class MismatchFacts(Shape):
    """First trial that the replay does not reproduce."""

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
    """Asks and trials that a sampled replay leaves out."""

    seed: int
    """The seed with which the asks were drawn."""
    skipped_asks: int
    """How many asks were not replayed."""
    skipped_trials: int
    """How many trials these asks produced."""
    miss_probability: float
    """The probability that a single changed ask is not among those that were replayed."""


class ProofFacts(Shape):
    """Result of a replay."""

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
    unknown: int
    """How many have no ask in the record: added by hand, or by another program."""
    salvaged: int
    """How many asks depended on rows that are now lost, because the study was salvaged."""
    sample: SampleFacts | None
    """What the sample left out; null where all asks were replayed."""
    mismatch: MismatchFacts | None
    """The first trial that is not reproduced; null where all are."""
