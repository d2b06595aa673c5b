"""Trials and the other records of a study: outcomes, events, asks, drivers and reports.

An ask is one request to an optimizer for designs; a driver is a process that runs a study's trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dse.core.design import Design
from dse.core.metric import Failure
from dse.system.former_fields import accept_former_field


class State(StrEnum):
    """State of a trial: PENDING > RUNNING > DONE | INFEASIBLE | FAILED; lost runs become PENDING.

    OUTSIDE is a finished trial from an older version of the space whose design is not in the
    present space: optimizers learn from it, but it is never part of a result. SCREENED is a
    finished trial that was evaluated only at lower fidelities (rungs): a later trial of the same
    design may be evaluated at the next one. STOPPED is a finished trial that was stopped early
    because it was certain to be dominated: its metrics may be those of an early step.
    """

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    OUTSIDE = "outside"
    SCREENED = "screened"
    STOPPED = "stopped"

    @property
    def finished(self) -> bool:
        """Whether the trial has ended, so that its result is final."""
        return self not in (State.PENDING, State.RUNNING)


@accept_former_field("fault", "failure")
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of the evaluation of one design: metrics, or the reason of a failure.

    ``spread`` holds the standard errors of metrics. ``measured`` is the number of measured
    evaluators that ran; one whose result came from a cache does not count. ``begun_at`` and
    ``finished_at`` are the wall clock of the evaluating machine, in seconds since 1970 (UTC);
    equality ignores them.
    """

    state: State
    metrics: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    cost_s: float = 0.0
    measured: int = 0
    begun_at: float | None = field(default=None, compare=False)
    finished_at: float | None = field(default=None, compare=False)

    def attempt(self, number: int, attempt: int) -> Attempt:
        """Return this failed outcome as the record of one attempt; the trial will be tried again.

        Args:
            number: the number of the trial.
            attempt: the number of the attempt.
        """
        return Attempt(
            number=number,
            attempt=attempt,
            failure=self.failure,
            cost_s=self.cost_s,
            begun_at=self.begun_at,
            finished_at=self.finished_at,
        )


@accept_former_field("fault", "failure")
@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Design suggested in a study, with the state and the outcome of its evaluation.

    It also stores the number of finished trials that were known when it was suggested. ``attempts``
    is the number of times that its evaluation was abandoned and the trial made pending again;
    ``worker`` is the driver (process) that runs it or has finished it. The times are wall clock, in
    seconds since 1970 (UTC): when it was suggested, when its last attempt began, and when that
    ended; ``None`` if not recorded, as in trials of older versions. Equality ignores the times.
    """

    number: int
    design: Design
    told: int = 0
    state: State = State.PENDING
    metrics: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    cost_s: float = 0.0
    measured: int = 0
    attempts: int = 0
    worker: int | None = None
    asked_at: float | None = field(default=None, compare=False)
    begun_at: float | None = field(default=None, compare=False)
    finished_at: float | None = field(default=None, compare=False)

    @property
    def outcome(self) -> Outcome:
        """Outcome of the trial."""
        return Outcome(
            state=self.state,
            metrics=self.metrics,
            spread=self.spread,
            failure=self.failure,
            cost_s=self.cost_s,
            measured=self.measured,
            begun_at=self.begun_at,
            finished_at=self.finished_at,
        )

    def moved(self, state: State) -> Trial:
        """Return a copy of the trial in another state, such as RUNNING."""
        return replace(self, state=state)

    def held(self, worker: int) -> Trial:
        """Return a copy of the trial as running, assigned to the driver (process) ``worker``."""
        return replace(self, state=State.RUNNING, worker=worker)

    def freed(self, attempts: int = 0) -> Trial:
        """Return a copy of the trial as pending, assigned to no process.

        Args:
            attempts: number of abandoned attempts to add to the trial's count of attempts.
        """
        return replace(
            self,
            state=State.PENDING,
            worker=None,
            attempts=self.attempts + attempts,
            begun_at=None,
        )

    def finished(self, outcome: Outcome, worker: int | None = None) -> Trial:
        """Return the trial as finished, with its outcome and the process that found it."""
        return Trial(
            number=self.number,
            design=self.design,
            told=self.told,
            state=outcome.state,
            metrics=outcome.metrics,
            spread=outcome.spread,
            failure=outcome.failure,
            cost_s=outcome.cost_s,
            measured=outcome.measured,
            attempts=self.attempts,
            worker=self.worker if worker is None else worker,
            asked_at=self.asked_at,
            begun_at=self.begun_at if outcome.begun_at is None else outcome.begun_at,
            finished_at=outcome.finished_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Event of a study's record: an optimizer's choice, a fallback, a proof or the like."""

    kind: str
    text: str
    told: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Request to an optimizer for new designs of a study, and the optimizer's reply.

    ``told`` is the number of finished trials that the optimizer had seen. ``after`` is the number
    of trials that the study then had: if the number has changed, nothing is added; ``None`` skips
    the check. ``wanted`` is the number of designs that were requested from the plug-in ``by``,
    which took ``seconds`` to suggest them. ``worker`` is the driver (process) that runs the new
    trials at once, except the last ``ahead`` of them, which any driver may take. Only one driver at
    a time may ask the optimizer: the asker (see :class:`~dse.protocols.Queueing`). ``term`` numbers
    its period in this role, and ``releases`` ends the period; with a ``term`` of ``None`` any
    driver may ask. ``at`` is the wall clock, in seconds since 1970 (UTC), that the new trials store
    as the time of their suggestion.
    """

    told: int = 0
    after: int | None = None
    ahead: int = 0
    term: int | None = None
    releases: bool = False
    wanted: int | None = None
    seconds: float = 0.0
    by: str = ""
    events: tuple[Event, ...] = ()
    worker: int | None = None
    at: float | None = None

    def issue(self, first: int, designs: Sequence[Design]) -> list[Trial]:
        """Return new trials of the requested designs, numbered from ``first`` on."""
        new = [
            Trial(number=number, design=design, told=self.told, asked_at=self.at)
            for number, design in enumerate(designs, first)
        ]
        if self.worker is None:
            return new
        held = max(len(new) - self.ahead, 0)
        return [*(trial.held(self.worker) for trial in new[:held]), *new[held:]]

    def kept(self, first: int, count: int) -> Asked:
        """Return the record of a request to an optimizer that added ``count`` trials.

        The trials are numbered from ``first`` on.
        """
        return Asked(
            first=first,
            count=count,
            wanted=self.wanted,
            told=self.told,
            seconds=self.seconds,
            by=self.by,
            worker=self.worker,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Record of a request to an optimizer that added ``count`` trials, numbered from ``first``."""

    first: int
    count: int
    wanted: int | None = None
    told: int = 0
    seconds: float = 0.0
    by: str = ""
    worker: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Process that runs trials of a study; the storage assigns its ``id``.

    ``started`` distinguishes it from a later process with the same ``pid`` on the same ``host``.
    ``beat`` increases while it is alive. ``left`` is true once it has left the study.
    ``provenance`` holds versions, machine and evaluators.
    """

    id: int = -1
    host: str = ""
    pid: int = 0
    started: str = ""
    beat: int = 0
    left: bool = False
    provenance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """State of a study's queue of trials, as returned to a driver that requests trials to run.

    ``waiting`` is the number of unfinished trials that no driver holds, ``holders`` the number of
    drivers that hold trials, and ``drivers`` the number of drivers that have not left the study.
    ``asker`` is the driver that currently may ask the optimizer for designs, in term number
    ``term``; without an asker, the next one's term is ``term + 1``. The last ask gave ``asked``
    designs in ``ask_s`` seconds. ``trials`` and ``finished`` are the numbers of all and of the
    finished trials of the study.
    """

    waiting: int = 0
    holders: int = 0
    drivers: int = 0
    asker: int | None = None
    term: int = 0
    asked: int = 0
    ask_s: float = 0.0
    trials: int = 0
    finished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Trials that a driver has taken from the queue to run, and the queue's state at that time.

    ``inherited`` holds the numbers of those trials that were held before by a driver that was lost.
    """

    trials: Sequence[Trial] = ()
    inherited: frozenset[int] = frozenset()
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Record of an abandoned attempt to evaluate a trial: the reason and the times.

    The times are wall clock, as in :class:`Trial`.
    """

    number: int
    attempt: int
    failure: Failure | None = None
    cost_s: float = 0.0
    begun_at: float | None = field(default=None, compare=False)
    finished_at: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Intermediate metrics of a running trial at a step; ``worker`` is the driver that runs it."""

    number: int
    attempt: int = 0
    step: int
    metrics: Mapping[str, float]
    worker: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Trials that finished, and trials that were added, since a reader last read the study."""

    finished: Sequence[Trial] = ()
    added: Sequence[Trial] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Corrupt or missing rows of a stored study.

    ``part`` is the kind of rows (``trials``, ``events`` ...; ``study`` for the study's own row,
    which has no number).
    """

    study: str
    part: str
    rows: Sequence[int] = ()
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Summary of a study for a list of studies, made without reading its trials.

    ``spec`` is empty and the counts are ``None`` if they cannot be read; ``problem`` is the reason,
    and is empty for a study without known damage. ``rows`` counts all of the study's rows.
    """

    study: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    trials: int | None
    finished: int | None
    rows: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Records of a study that accumulate after its creation, such as trials and events.

    Each kind of record has its own order: ``trials`` are sorted by number; ``order`` holds the
    numbers of the finished trials in the order of finishing.
    """

    trials: Sequence[Trial] = ()
    order: Sequence[int] = ()
    events: Sequence[Event] = ()
    asks: Sequence[Asked] = ()
    attempts: Sequence[Attempt] = ()
    reports: Sequence[Report] = ()
    drivers: Sequence[Driver] = ()
