"""Pydantic models of the JSON data that the API sends and receives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dse.core.trial import State
from dse.report.schemas.front_schema import GapFacts

Scalar = bool | int | float | str
Condition = Literal["running", "stopping", "paused", "complete", "unreadable"]
Text = Annotated[str, Field(max_length=1_000)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorDetail(_Message):
    """Body of an error response: the problem, and how to fix it."""

    error: str
    hint: str


class StudySummary(_Message):
    """One study in the list of studies.

    ``quiet_s`` is the time in seconds since new trials were last seen; null if none were seen yet.
    ``done`` is how many trials or measurements (see ``counted``) of the budget ``of`` are used;
    ``of`` is null without such a bound. ``hypervolume_share`` is the hypervolume as a share of the
    volume between the reference point and the ideal point, from 0 to 1.
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
    hypervolume_share: float | None
    hypervolume_estimated: bool
    quiet_s: float | None
    problem: str


class Studies(_Message):
    """List of the studies of a storage, in the order in which they were started."""

    storage: str
    studies: list[StudySummary]


class DriverRow(_Message):
    """Process that runs the study; ``own`` if this server started it."""

    id: int
    host: str
    pid: int
    own: bool


class EventRow(_Message):
    """Event in a study's record that is not about a single trial, such as an optimizer's choice."""

    kind: str
    text: str
    told: int


class FailureRow(_Message):
    """Group of finished trials that failed or are infeasible for the same reason.

    ``trials`` are the numbers of some of them.
    """

    kind: str
    reason: str
    count: int
    trials: list[int]


class StudyState(StudySummary):
    """Present state of a study.

    ``mark`` is a string that changes whenever the state does. ``gap`` is the bound on the share of
    the hypervolume that the front may still miss; null while it is unknown.
    """

    mark: str
    exact: bool
    exact_over: int | None
    failed: int
    failure: str
    measurements: int
    gap: GapFacts | None
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
    """Failure of a trial: its kind and reason."""

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
    """One trial of a study, with the number of trials finished when it was proposed.

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
    """Selection of trials for a page, and the column by which the page sorts them.

    ``sort`` is the column's heading, with ``-`` before it for descending order.
    """

    sort: Text = ""


class TrialPage(_Message):
    """Selected trials of a study in order of their numbers.

    ``total`` counts all trials in the selected state.
    """

    study: str
    total: int
    objectives: list[ObjectiveRow]
    limits: list[str]
    metrics: dict[str, str]
    words: dict[str, list[str]]
    parameters: dict[str, str]
    trials: list[TrialDetail]


class AttemptRow(_Message):
    """Abandoned attempt to evaluate a trial, after which another attempt was made."""

    attempt: int
    fault: FaultRow | None
    cost_s: float | None
    begun_at: float | None
    finished_at: float | None


class ReportRow(_Message):
    """Intermediate metrics that an evaluator reported at a step of its run."""

    attempt: int
    step: int
    metrics: dict[str, float | None]
    worker: int | None


class TrialRecord(_Message):
    """Complete record of one trial, with its abandoned attempts and intermediate reports."""

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
    """Figures of a study; ``mark`` identifies the state that they show."""

    mark: str
    figures: list[Figure]


class Start(_Message):
    """Request to run a study, with an optional budget in place of the study's own."""

    trials: int | None = Field(default=None, ge=1, le=1_000_000_000)
    measurements: int | None = Field(default=None, ge=1, le=1_000_000_000)


class Proposal(_Message):
    """Request to check, evaluate or add a design.

    ``values`` has a value for each active parameter; quantities with a unit are strings.
    """

    values: dict[Text, bool | int | float | Text] = Field(max_length=5_000)
    action: Literal["judge", "evaluate", "add"] = "judge"


class Judgement(_Message):
    """Response to a proposed design: whether it is legal and, if evaluated, its metrics.

    ``same_as`` is the number of a trial that already has this design, ``added`` that of the new
    trial.
    """

    legal: bool
    reason: str
    design: dict[str, Scalar]
    same_as: int | None = None
    added: int | None = None
    outcome: OutcomeRow | None = None
