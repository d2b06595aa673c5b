"""``dse status``, ``dse run`` and ``dse studies``: a study as a whole."""

from __future__ import annotations

from dse.report.schemas.base import FaultKind, Shape, State
from dse.report.schemas.front import CoverageFacts, FrontRow
from dse.report.schemas.trials import ObjectiveFacts


class EventFacts(Shape):
    """Something that a study remembers beside its trials."""

    kind: str
    """What it is about, in a word."""
    text: str
    """What happened."""
    told: int
    """How many trials had finished by then."""


class DriverFacts(Shape):
    """A process that works or worked on a study."""

    id: int
    """Its number in the study."""
    pid: int
    """Its process on its machine."""
    host: str
    """Its machine."""
    left: bool
    """Whether it has ended, as far as can be known from here."""
    provenance: dict[str, str]
    """With what it ran: versions of packages, processor, the state of the study's folder."""


class Status(CoverageFacts):
    """Progress of a study."""

    study: str
    """The study's name."""
    question: str
    """What the study asks, in its author's words."""
    trials: dict[State, int]
    """How many trials are in each state; a state that none is in has no key."""
    measurements: int
    """How many trials were measured."""
    seconds: float | None
    """What all evaluations took together, in seconds."""
    busy: float | None
    """The share of the time at work in which its workers evaluated, from 0 to 1; null where nothing
    is measured or no trial tells when it ran."""
    per_hour: float | None
    """Finished trials for each hour at work, that is without pauses; null as `busy`."""
    front: int
    """How many designs are on the front."""
    hypervolume: float | None
    """The volume that the front dominates; null without a reference point."""
    hypervolume_estimated: bool
    """Whether the hypervolume is an estimate, as it is for many designs of many objectives."""
    failures: dict[FaultKind, int]
    """How many trials have no metrics, by why."""
    trusted: bool
    """Whether it may be run: an imported study waits for `dse studies trust`."""
    warnings: list[str]
    """What a new study would be refused for, such as a parameter that nothing reads."""
    events: list[EventFacts]
    """What happened, in its order."""
    drivers: list[DriverFacts]
    """Who works or worked on it."""


class Ended(CoverageFacts):
    """Result of a run."""

    study: str
    """The study's name."""
    reason: str
    """Why it ended."""
    trials: dict[State, int]
    """How many trials are in each state; a state that none is in has no key."""
    measurements: int
    """How many trials were measured, those of earlier runs too."""
    seconds: float | None
    """What all evaluations took together, in seconds."""
    failures: dict[FaultKind, int]
    """How many trials have no metrics, by why."""
    reference_point: list[float | None] | None
    """From where the hypervolume is counted, in the objectives' order, units and signs."""
    hypervolume: float | None
    """The volume that the front dominates; null without a reference point."""
    hypervolume_estimated: bool
    """Whether the hypervolume is an estimate, as it is for many designs of many objectives."""
    feasible: bool
    """Whether any design keeps all limits; where none does, `front` holds the nearest misses."""
    objectives: list[ObjectiveFacts]
    """What is asked; rows have their values in this order."""
    front: list[FrontRow]
    """The designs that no other beats."""


class StudyRow(Shape):
    """A study of a storage."""

    study: str
    """Its name."""
    trials: int | None
    """How many trials it has; null where that cannot be read."""
    finished: int | None
    """How many of them have ended, whatever they came to; null where that cannot be read."""
    question: str
    """What it asks, in its author's words."""
    problem: str
    """What is damaged; empty where no damage is known. The rows of a storage that holds more than
    10,000 are counted and not checked: `dse doctor` checks them."""


class Trusted(Shape):
    """Permission to run a study here, and the programs and clusters that it would use."""

    study: str
    """Its name."""
    trusted: bool
    """Whether it was begun here, or was imported and the user has trusted it."""
    starts: list[str]
    """The programs, functions, plug-ins of others and clusters that running it would use."""
    problem: str
    """Why these cannot be told; empty where they can."""


class Forgotten(Shape):
    """A study that was deleted."""

    study: str
    """Its name."""
    trials: int | None
    """How many trials it had; null where that could not be read."""


class CarriedOver(Shape):
    """A study that was begun with the trials of another space."""

    study: str
    """The new study's name."""
    inside: int
    """How many trials are legal in the new space and count as its own."""
    outside: int
    """How many are not, and are learnt from alone."""
