"""JSON schemas of ``dse status``, ``dse run`` and ``dse studies``: progress of studies."""

from __future__ import annotations

from typing import Any

from dse.report.schemas.base import FailureKind, Shape, State
from dse.report.schemas.front_schema import CoverageFacts, FrontRow, GapFacts
from dse.report.schemas.trials_schema import ObjectiveFacts


class EventFacts(Shape):
    """Recorded event of a study, other than a trial."""

    kind: str
    """The kind of the event."""
    text: str
    """What happened."""
    told: int
    """How many trials had finished by then."""


class DriverFacts(Shape):
    """Driver: a process that runs or ran a study."""

    id: int
    """Its number in the study."""
    pid: int
    """Its process id on its machine."""
    host: str
    """Its machine."""
    left: bool
    """Whether it has ended, as far as this machine can determine."""
    provenance: dict[str, str]
    """Its environment: versions of packages, processor, the state of the study's folder."""


class Status(CoverageFacts):
    """State of a study: its trials, hypervolume, events and drivers."""

    study: str
    """The study's name."""
    question: str
    """The study's question as its author wrote it."""
    trials: dict[State, int]
    """How many trials are in each state; a state without trials has no key."""
    measurements: int
    """How many trials were measured."""
    seconds: float | None
    """The total time of all evaluations in seconds."""
    busy: float | None
    """The share of the working time in which its workers evaluated, from 0 to 1; null where nothing
    is measured or no trial has recorded times."""
    per_hour: float | None
    """Finished trials per hour of working time, without pauses; null as `busy`."""
    front: int
    """How many designs are on the front."""
    hypervolume: float | None
    """The volume that the front dominates; null without a reference point."""
    hypervolume_share: float | None
    """The hypervolume as a share, from 0 to 1, of the volume between the reference point and the
    ideal point, which has the best value of each objective on the front; null as `hypervolume`, and
    with a single objective."""
    hypervolume_estimated: bool
    """Whether the hypervolume is an estimate, as it is for many designs of many objectives."""
    gap: GapFacts | None
    """The bound on what the front may still miss; null while it is unknown."""
    failures: dict[FailureKind, int]
    """How many trials have no metrics, by reason."""
    trusted: bool
    """Whether it may be run; an imported study needs `dse studies trust` first."""
    warnings: list[str]
    """Problems for which a new study would be refused, such as a parameter that nothing reads."""
    attributes: dict[str, Any]
    """The attributes that users have given the study, by name."""
    trial_attributes: dict[str, dict[str, Any]]
    """The attributes of trials, by the number of the trial, then by name."""
    events: list[EventFacts]
    """The events in order, without those that record attributes."""
    drivers: list[DriverFacts]
    """The drivers that run or ran it."""


class Ended(CoverageFacts):
    """State of a study at the end of a run."""

    study: str
    """The study's name."""
    reason: str
    """Why it ended."""
    trials: dict[State, int]
    """How many trials are in each state; a state without trials has no key."""
    measurements: int
    """How many trials were measured, including those of earlier runs."""
    seconds: float | None
    """The total time of all evaluations in seconds."""
    failures: dict[FailureKind, int]
    """How many trials have no metrics, by reason."""
    reference_point: list[float | None] | None
    """The reference point of the hypervolume, in the objectives' order, units and signs."""
    hypervolume: float | None
    """The volume that the front dominates; null without a reference point."""
    hypervolume_share: float | None
    """The hypervolume as a share, from 0 to 1, of the volume between the reference point and the
    ideal point, which has the best value of each objective on the front; null as `hypervolume`, and
    with a single objective."""
    hypervolume_estimated: bool
    """Whether the hypervolume is an estimate, as it is for many designs of many objectives."""
    feasible: bool
    """Whether any design keeps all limits; where none does, `front` holds the nearest misses."""
    objectives: list[ObjectiveFacts]
    """The objectives; rows have their values in this order."""
    front: list[FrontRow]
    """The non-dominated designs."""


class StudyRow(Shape):
    """Study in the list of the studies that a storage holds."""

    study: str
    """Its name."""
    trials: int | None
    """How many trials it has; null where that cannot be read."""
    finished: int | None
    """How many of them have ended, in any state; null where that cannot be read."""
    question: str
    """Its question as its author wrote it."""
    problem: str
    """The damage; empty where none is known. The rows of a storage that holds more than
    10,000 are counted and not checked: `dse doctor` checks them."""


class Trusted(Shape):
    """Whether a study may be run here, and the programs and clusters that it would use."""

    study: str
    """Its name."""
    trusted: bool
    """Whether it was begun here, or was imported and the user has trusted it."""
    starts: list[str]
    """The programs, functions, third-party plug-ins and clusters that running it would use."""
    problem: str
    """Why these cannot be determined; empty where they can."""


class Forgotten(Shape):
    """JSON result of deleting a study."""

    study: str
    """Its name."""
    trials: int | None
    """How many trials it had; null where that could not be read."""


class CarriedOver(Shape):
    """Study that was started with the trials of a study on another space."""

    study: str
    """The new study's name."""
    inside: int
    """How many trials are legal in the new space and count as its own."""
    outside: int
    """How many are not legal, and are used for learning only."""
