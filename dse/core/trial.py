"""A design on its way from proposal to outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dse.core.design import Design
from dse.core.metric import Fault


class State(StrEnum):
    """PENDING > RUNNING > DONE | INFEASIBLE | FAILED; a lost run goes back to PENDING.

    OUTSIDE is a finished trial of an older space whose design the present space does not have: it
    is learnt from, and never part of an answer. SCREENED is a finished trial for which only lower
    rungs of a ladder were bought: a later trial of the same design may buy the next. STOPPED is a
    finished trial that was certain to be dominated: its metrics may be those of an early step.
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
        """True when nothing more will be learnt from the trial."""
        return self not in (State.PENDING, State.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of the evaluation of one design.

    ``measured`` counts the measured evaluators that ran for it; a reading that was known
    already costs none. ``begun_at`` and ``finished_at`` are the wall clock of the machine that
    evaluated, in seconds since 1970 (UTC); no two outcomes differ by their times alone.
    """

    state: State
    metrics: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    fault: Fault | None = None
    cost_s: float = 0.0
    measured: int = 0
    begun_at: float | None = field(default=None, compare=False)
    finished_at: float | None = field(default=None, compare=False)

    def attempt(self, number: int, attempt: int) -> Attempt:
        """Return the record of this outcome for a trial that is issued again."""
        return Attempt(
            number=number,
            attempt=attempt,
            fault=self.fault,
            cost_s=self.cost_s,
            begun_at=self.begun_at,
            finished_at=self.finished_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One design of a study, and the number of finished trials known when it was suggested.

    ``attempts`` counts how often it was given up and issued again; ``worker`` is the driver that
    holds it, or that finished it. The times are wall clock, in seconds since 1970 (UTC): when it
    was asked, when its last attempt was begun, and when that ended; ``None`` where nobody noted it,
    as in trials of older versions. They are no part of what a trial is: trials that differ in
    nothing else are equal.
    """

    number: int
    design: Design
    told: int = 0
    state: State = State.PENDING
    metrics: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    fault: Fault | None = None
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
            fault=self.fault,
            cost_s=self.cost_s,
            measured=self.measured,
            begun_at=self.begun_at,
            finished_at=self.finished_at,
        )

    def moved(self, state: State) -> Trial:
        """The trial in another state."""
        return replace(self, state=state)

    def held(self, worker: int) -> Trial:
        """The trial as the driver runs it."""
        return replace(self, state=State.RUNNING, worker=worker)

    def freed(self, attempts: int = 0) -> Trial:
        """Return the trial as pending and held by no driver, after so many more attempts."""
        return replace(
            self,
            state=State.PENDING,
            worker=None,
            attempts=self.attempts + attempts,
            begun_at=None,
        )

    def finished(self, outcome: Outcome, worker: int | None = None) -> Trial:
        """The trial with its outcome; ``worker`` is the driver that found it, if it is known."""
        return Trial(
            number=self.number,
            design=self.design,
            told=self.told,
            state=outcome.state,
            metrics=outcome.metrics,
            spread=outcome.spread,
            fault=outcome.fault,
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
    """Something that a study remembers beside its trials: a choice, a fallback, a proof."""

    kind: str
    text: str
    told: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Origin of suggested designs, stored with them in one step.

    ``told`` counts the finished trials that the optimizer knew, ``after`` the trials that the
    study had: where it has another number by now, nothing is added; ``None`` is not checked.
    ``wanted`` is how many designs were asked for, ``by`` the plug-in that was asked, and
    ``worker`` the driver that runs the new trials at once, but for the last ``ahead`` of them,
    which wait for any driver. ``term`` is that of the asker (see :class:`~dse.protocols.Queueing`),
    who steps down with the ask if it ``releases``; ``None`` asks without being the asker. ``at`` is
    the wall clock, in seconds since 1970 (UTC), from which the new trials have the time at which
    they were asked.
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
        """Return the trials of these designs, numbered from ``first`` on."""
        new = [
            Trial(number=number, design=design, told=self.told, asked_at=self.at)
            for number, design in enumerate(designs, first)
        ]
        if self.worker is None:
            return new
        held = max(len(new) - self.ahead, 0)
        return [*(trial.held(self.worker) for trial in new[:held]), *new[held:]]

    def kept(self, first: int, count: int) -> Asked:
        """Return the record of an ask that gave ``count`` trials from number ``first`` on."""
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
    """Record of an ask: the trials from number ``first`` on that it gave."""

    first: int
    count: int
    wanted: int | None = None
    told: int = 0
    seconds: float = 0.0
    by: str = ""
    worker: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A process that runs trials of a study; its ``id`` is given by the storage.

    ``started`` tells one process from a later one with the same ``pid`` on the same ``host``.
    ``beat`` rises while it lives. ``provenance`` holds versions, machine and evaluators.
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
    """State of a study for a driver that requests trials.

    ``waiting`` counts unfinished trials that nobody holds, ``holders`` the drivers that hold some,
    and ``drivers`` all that have not left. ``asker`` is who asks at present, in the ``term`` of
    that number; without one, the next asker's term is one more. The last ask gave ``asked``
    designs in ``ask_s`` seconds. ``trials`` and ``finished`` count those of the study.
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
    """The trials that a driver has taken, and how the study stood then.

    ``inherited`` holds the numbers of those that a lost driver held before.
    """

    trials: Sequence[Trial] = ()
    inherited: frozenset[int] = frozenset()
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One time that a trial was given up and issued again, why, and when (as in :class:`Trial`)."""

    number: int
    attempt: int
    fault: Fault | None = None
    cost_s: float = 0.0
    begun_at: float | None = field(default=None, compare=False)
    finished_at: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An intermediate result of a trial; ``worker`` is the driver that runs it, as in ``Trial``."""

    number: int
    attempt: int = 0
    step: int
    metrics: Mapping[str, float]
    worker: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """New data of a study: trials finished, in order, and trials added."""

    finished: Sequence[Trial] = ()
    added: Sequence[Trial] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Rows of a study that are not as they were written, or are missing.

    ``part`` is what they hold (``trials``, ``events`` ...; ``study`` for the study's own row, which
    has no number).
    """

    study: str
    part: str
    rows: Sequence[int] = ()
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A study as a list of studies shows it; no trial is read for it.

    ``spec`` is empty, and the counts are ``None``, where they cannot be read; ``problem`` says why,
    and is empty for a study of which no damage is known. ``rows`` counts all of
    its rows.
    """

    study: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    trials: int | None
    finished: int | None
    rows: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Records of a study besides its initial data, each kind in its own order.

    ``trials`` stand by number; ``order`` holds the numbers of the finished ones as they ended.
    """

    trials: Sequence[Trial] = ()
    order: Sequence[int] = ()
    events: Sequence[Event] = ()
    asks: Sequence[Asked] = ()
    attempts: Sequence[Attempt] = ()
    reports: Sequence[Report] = ()
    drivers: Sequence[Driver] = ()
