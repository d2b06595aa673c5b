"""``dse verify``: whether a record follows from itself."""

from __future__ import annotations

from dse.report.schemas.base import Design, Shape


class MismatchFacts(Shape):
    """The first trial that does not follow from the record."""

    trial: int
    """Its number."""
    reason: str
    """What is wrong."""
    expected: Design | None
    """The design that the optimizer asks for; null where it asks for none."""
    found: Design | None
    """The design that the record has; null where it has none."""
    versions: dict[str, tuple[str, str]]
    """What has another version than when the study ran: then, and now."""


class SampleFacts(Shape):
    """Asks and trials that a sample left out."""

    seed: int
    """With which the asks were drawn."""
    skipped_asks: int
    """How many asks were not replayed."""
    skipped_trials: int
    """How many trials they gave."""
    miss_probability: float
    """How likely a single changed ask, any of all, is not among those that were replayed."""


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
    """How many came from another study, and are no subject of a proof."""
    unknown: int
    """How many have no ask in the record: added by hand, or by another program."""
    salvaged: int
    """How many were asked knowing rows that are lost: the study was salvaged."""
    sample: SampleFacts | None
    """What was left out of a sample; null where all asks were replayed."""
    mismatch: MismatchFacts | None
    """The first trial that does not follow; null where all do."""
