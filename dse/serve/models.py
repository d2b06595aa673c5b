"""Models of the data that the live view sends to programs and receives from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dse.core.trial import State

Scalar = bool | int | float | str
Condition = Literal["running", "stopping", "paused", "complete", "unreadable"]
Text = Annotated[str, Field(max_length=1_000)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorDetail(_Message):
    """Reason why something was not done, and how to fix it."""

    error: str
    hint: str


class StudySummary(_Message):
    """Row of the list of studies.

    ``quiet_s`` is the time in seconds since new trials were last seen; null if none were seen yet.
    ``done`` of a budget of ``of`` trials or measurements are used; null if it has no such bound.
    """

    name: str
    question: str
    state: Condition
    trials: int
    finished: int
    done: int
    of: int | None
    counted: Literal["trials", "measurements"]
    front: int
    hypervolume: float | None
    hypervolume_estimated: bool
    quiet_s: float | None
    problem: str


class Studies(_Message):
    """Studies of the storage, in the order in which they were begun."""

    storage: str
    studies: list[StudySummary]


class DriverRow(_Message):
    """Process that runs the study; ``own`` if this server started it."""

    id: int
    host: str
    pid: int
    own: bool


class EventRow(_Message):
    """Recorded event of a study, other than a trial."""

    kind: str
    text: str
    told: int


class FailureRow(_Message):
    """Reason why designs are not on the front, with some of their trials."""

    kind: str
    reason: str
    count: int
    trials: list[int]


class StudyState(StudySummary):
    """Present state of a study; ``mark`` changes whenever the state does."""

    mark: str
    exact: bool
    exact_over: int | None
    failed: int
    failure: str
    measurements: int
    seconds: float
    reason: str
    counts: dict[str, int]
    drivers: list[DriverRow]
    events: list[EventRow]
    failures: list[FailureRow]
    last_words: str


class ObjectiveRow(_Message):
    """Objective of a study, with its expression, goal and unit."""

    name: str
    expression: str
    goal: str
    unit: str


class FaultRow(_Message):
    """Reason why a trial has no metrics."""

    kind: str
    reason: str


class OutcomeRow(_Message):
    """Outcome of the evaluation of a design; metrics and objectives are in their units."""

    metrics: dict[str, float | None]
    spread: dict[str, float | None]
    objectives: list[float | None]
    feasible: bool
    broken: dict[str, float]
    state: str
    fault: FaultRow | None
    cost_s: float | None
    measured: int


class TrialDetail(OutcomeRow):
    """Trial, with the number of finished trials that were known when it was asked.

    ``attempts`` is the number of abandoned attempts. Times are seconds since 1970, UTC; null where
    none was recorded.
    """

    trial: int
    design: dict[str, Scalar]
    told: int
    attempts: int
    asked_at: float | None
    begun_at: float | None
    finished_at: float | None


class TrialFilter(_Message):
    """Selection of trials: at most ``count`` from index ``first`` on, of one state or of all."""

    first: int = Field(default=0, ge=0, le=2**53)
    count: int = Field(default=100, ge=1, le=1_000)
    state: State | None = None


class TrialView(TrialFilter):
    """Selection of trials for a page; ``sort`` is the column by which its script sorts them.

    A ``-`` before the column's heading reverses the order.
    """

    sort: Text = ""


class TrialPage(_Message):
    """Selected trials of a study by number; ``total`` counts all in the selected state."""

    study: str
    total: int
    objectives: list[ObjectiveRow]
    limits: list[str]
    metrics: dict[str, str]
    words: dict[str, list[str]]
    parameters: dict[str, str]
    trials: list[TrialDetail]


class AttemptRow(_Message):
    """Attempt of a trial that was abandoned, after which the trial was issued again."""

    attempt: int
    fault: FaultRow | None
    cost_s: float | None
    begun_at: float | None
    finished_at: float | None


class ReportRow(_Message):
    """Intermediate report of an evaluator during its evaluation."""

    attempt: int
    step: int
    metrics: dict[str, float | None]
    worker: int | None


class TrialRecord(_Message):
    """Complete record of one trial."""

    trial: TrialDetail
    asked_by: str
    worker: str
    attempts: list[AttemptRow]
    reports: list[ReportRow]


class Figure(_Message):
    """Figure in plotly's JSON form."""

    key: str
    title: str
    caption: str
    height_px: int
    data: list[dict[str, Any]]
    layout: dict[str, Any]


class Figures(_Message):
    """Figures of a study in the state with the given ``mark``."""

    mark: str
    figures: list[Figure]


class Start(_Message):
    """Budget of a run; without any bound, that of the study."""

    trials: int | None = Field(default=None, ge=1, le=1_000_000_000)
    measurements: int | None = Field(default=None, ge=1, le=1_000_000_000)


class Proposal(_Message):
    """Proposed design: a value for each active parameter, quantities with a unit as text."""

    values: dict[Text, bool | int | float | Text] = Field(max_length=5_000)
    action: Literal["judge", "evaluate", "add"] = "judge"


class Judgement(_Message):
    """Result of a proposal: its legality and, if requested, its outcome.

    ``same_as`` is the trial that already has this design, ``added`` the number of a new trial.
    """

    legal: bool
    reason: str
    design: dict[str, Scalar]
    same_as: int | None = None
    added: int | None = None
    outcome: OutcomeRow | None = None
