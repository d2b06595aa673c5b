"""Main loop of a study: ask for designs, store, evaluate, store, inform the optimizer.

Starting, resuming and continuing a study are the same operation.

Any number of processes (drivers) may loop over one study. At most one of them asks at a time,
knowing the complete record, for itself and ahead for the others, which take trials from the queue.
Each driver reads the others' results in the order of the record, and passes them to its optimizer
before it asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dse.core.design import Design
from dse.core.metric import FaultKind
from dse.core.recorded_gap import REACHED
from dse.core.space import DesignSpace
from dse.core.trial import Ask, Event, Outcome, State, Trial
from dse.errors import DseError, OutageError, Overtaken
from dse.evaluation.checkpoints import TrialFolders, is_lost
from dse.evaluation.early_stopping import convert_for_optimizer
from dse.evaluation.pipeline import MeasurementCache
from dse.evaluation.reporting import unheard
from dse.evaluation.retries import RETRIES
from dse.optimizers.bayesian.gain_stopping import KIND, PATIENCE, Patience
from dse.protocols import (
    EndedByCaller,
    Executor,
    HasEvents,
    Optimizer,
    ReportsBegin,
    ReportsIntermediate,
    traits_of,
)
from dse.study.asking import AskCoordinator
from dse.study.claimed_trials import ClaimedTrials
from dse.study.clock import Clock
from dse.study.fidelity_rungs import TrialFidelities
from dse.study.gap_stopping import GapMonitor
from dse.study.history import TrialHistory, last_suggestions
from dse.study.lease import Lease
from dse.study.stopping_bounds import Bounds, Room
from dse.study.suggestions import check_suggestions
from dse.study.thinking import ThinkingControl, effort_changes
from dse.study.times import Times
from dse.system.swallowed_interrupts import raise_lost_interrupt

GIVEN = "(given)"
"""Name in the record of the source of baselines and inherited designs: no optimizer asked them."""

LATE = "the time is used up"
DRY = "no design is left to ask"
STOPPED = "stopped by the program"

_SHORTEST_S, _LONGEST_S = 0.01, 1.0
"""Shortest and longest pause between two reads of the record; each read in vain doubles it."""


@dataclass(kw_only=True)
class Loop:
    """One driver's run over a study: its collaborators, and its trials in flight.

    ``by`` is the optimizer's name in the record. ``first`` are the designs that come before any
    suggestion, such as baselines. ``stages`` gives the rung from which each evaluator runs, for an
    optimizer that climbs a fidelity ladder; a trial's rung is how many earlier trials have its
    design. Without ``lingers`` the loop ends even if other drivers have trials in flight, and takes
    none of theirs. Only trials with numbers ``below`` a bound are taken from others. An idle
    executor without capacity is waited for; its optional attribute ``ended`` gives the reason why
    nothing more is asked. ``set_aside`` receives outcomes before the storage does. With ``drains``,
    running evaluations are completed if the storage is lost. Once ``is_stopped`` returns true,
    nothing more is asked or begun, and the loop ends with its running evaluations. ``gap`` is the
    stopping rule of a budget with a gap; ``thinking`` keeps the cost of suggestions low.
    """

    space: DesignSpace
    ledger: TrialHistory
    lease: Lease
    optimizer: Optimizer
    executor: Executor
    readings: MeasurementCache
    bounds: Bounds
    by: str = ""
    first: Sequence[Design] = ()
    stages: Mapping[str, int] = field(default_factory=dict)
    retries: Mapping[FaultKind, int] = field(default_factory=lambda: dict(RETRIES))
    lingers: bool = True
    drains: bool = True
    below: int | None = None
    thinking: ThinkingControl | None = None
    clock: Clock = field(default_factory=Clock)
    gap: GapMonitor | None = None
    is_stopped: Callable[[], bool] = lambda: False
    on_finished: Callable[[Trial], None] = lambda _: None
    set_aside: Callable[[Mapping[int, Outcome]], None] = lambda _: None

    _holding: ClaimedTrials = field(init=False)
    _asker: AskCoordinator = field(init=False)
    _waiting: list[Trial] = field(default_factory=list, init=False)
    _rungs: TrialFidelities = field(init=False)
    _flying: set[int] = field(default_factory=set, init=False)
    _folders: TrialFolders = field(init=False)
    _times: Times = field(init=False)
    _finished_count: int = field(default=0, init=False)
    _noted: int = field(default=0, init=False)
    _idle: bool = field(default=False, init=False)
    _measured: int = field(default=0, init=False)
    _spent_s: float = field(default=0.0, init=False)
    _pause_s: float = field(default=_SHORTEST_S, init=False)
    _until: int = field(default=0, init=False)
    _dry: tuple[int, int] = field(default=(-1, -1), init=False)
    _unsaid: list[Event] = field(default_factory=list, init=False)
    _patience: Patience | None = field(default=None, init=False)

    def run(self) -> str:
        """Run until a limit of the budget is reached or no design is left; return the reason.

        Raises:
            OutageError: the storage was unavailable for too long; outcomes are kept in a file.
        """
        try:
            return self._run()
        except OutageError:
            if self.drains:
                self._finish_measuring()
            raise

    def _run(self) -> str:
        started_s = self.clock.now_s()
        ended = self._remember()
        started_s -= self._spent_s
        begins_late = self._is_late(started_s)
        caller = self.executor if isinstance(self.executor, EndedByCaller) else None
        while not ended:
            raise_lost_interrupt()
            late = self._is_late(started_s)
            if not late or begins_late:  # if it begins late, no later run would take these
                self._take_up()
            self._submit()
            over = LATE if late else caller.ended if caller else ""
            over = STOPPED if self.is_stopped() else over
            reason = over or self._ask()
            if self._waiting and self._room > 0:
                continue
            if reason and caller:
                caller.report_exhaustion()
            if self._flying or not (reason or self._idle):
                self._collect()
            elif not over and (self._idle or self._is_awaiting_others()):
                self._pause()
            else:
                self._learn()
                self._record()
                return reason
        return ended

    def _is_late(self, started_s: float) -> bool:
        limit_s = self.bounds.time_s
        return limit_s is not None and self.clock.now_s() - started_s >= limit_s

    @property
    def _room(self) -> int:
        """Number of further trials that the executor accepts at this moment."""
        busy = self.executor.barrier and self._flying
        return 0 if busy else self.executor.capacity - len(self._flying)

    def _remember(self) -> str:
        """Read the study's record and restore the loop's state; return why the study has ended.

        The result is empty if the study continues.
        """
        ledger = self.ledger
        stages = self.stages if traits_of(self.optimizer).multi_fidelity else {}
        self._rungs = TrialFidelities(ledger, stages, whole=self.first)
        begins = self.readings.measured
        self._folders = TrialFolders(ledger.study, used=begins)
        self._holding = ClaimedTrials(ledger, self.lease, self.retries, begins=begins)
        self._times = Times(ledger, kept=begins)
        if isinstance(self.executor, ReportsBegin):
            self.executor.on_begin = self._times.note
        reported = len(ledger.finished)  # by an earlier phase of the run, or before it began
        ledger.read()
        self._asker = AskCoordinator(
            ledger,
            self.lease,
            clock=self.clock,
            inherit=self._holding.inherit,
            below=self.below,
            lingers=self.lingers,
        )
        self._folders.sweep(ledger.finished)
        storage, study = ledger.storage, ledger.study
        self._spent_s = sum(attempt.cost_s for attempt in storage.attempts(study))
        self._note_news(reported)
        return self._recall_stop()

    def _recall_stop(self) -> str:
        """Restore the stopping rules from the record; return the reason if one ended the study."""
        ledger, events = self.ledger, self.ledger.storage.events(self.ledger.study)
        ended = "" if self.gap is None else self.gap.recall(events, ledger.trials)
        if ended or self.bounds.min_improvement is None:
            return ended
        self._patience = Patience(self.bounds.min_improvement)
        ended = self._patience.ended(events, ledger.trials)
        if ended:
            return ended
        last = last_suggestions(ledger, self.by, PATIENCE - 1)
        self._patience.recall(self.optimizer, self._teach, ledger.finished, last)
        return ""

    def _take_up(self) -> None:
        """Claim trials that no live driver holds, as far as there is room, unless it is stopped."""
        if self.is_stopped():
            self._waiting.clear()
            return
        own = self._flying.union(trial.number for trial in self._waiting)
        room = self._room - len(self._waiting)
        if not self._asker.queues:
            self._waiting += self._holding.taken(room, own)
        else:
            self._waiting += self._asker.take(room, own)
            self._folders.forget(self._note_news())  # a take that gives trials reads the record

    def _ask(self) -> str:
        """Ask for new designs if any driver needs some; return why the study ends, else ``''``.

        The loop is idle if this driver needs designs while another driver has the asker's role.
        """
        while True:
            own = self._count_own()
            ahead = self._asker.count_ahead(own, holds=bool(self._flying))
            self._idle = own > 0 and not self._asker.is_free()
            if self._idle or own + ahead <= 0 or not self._asker.is_free():
                return ""
            if not self._asker.knows:
                self._learn()
            room = self._count_room()
            count = min(own + min(ahead, room.affordable), room.count)
            if count <= 0 or self._dry == self._known:
                reason = room.reason if count <= 0 else self._enough(())
                return reason if own > 0 else ""
            self._idle = not self._asker.begin()
            if self._idle:
                return ""
            try:
                reason = self._queue_designs(count, own)
            except Overtaken:
                self._asker.note_overtaken()
                self._learn()
            else:
                return reason if own > 0 else ""

    def _count_own(self) -> int:
        """Return how many designs to ask for this driver: as many as the executor accepts.

        If suggestions cost too much, it is more, and the others wait.
        """
        room = 0 if self._waiting else max(self._room, 0)
        ahead = self.thinking is not None and self.drains and room > 0
        return max(room, self.thinking.batch) if self.thinking and ahead else room

    @property
    def _known(self) -> tuple[int, int]:
        """Number of finished trials, and of all trials, that the driver has read."""
        return len(self.ledger.finished), len(self.ledger.trials)

    def _count_room(self) -> Room:
        room = self.bounds.room(
            asked=len(self.ledger.trials),
            finished=len(self.ledger.finished),
            measured=self._measured,
            under_way=len(self.ledger.open),
            spent_s=self._spent_s,
        )
        self._until = room.until
        return room

    def _queue_designs(self, count: int, own: int) -> str:
        """Add up to ``count`` designs, ``own`` for this driver itself; return why none is left.

        Raises:
            Overtaken: another driver added trials in between; nothing was stored.
        """
        self._teach(self.ledger.finished[self._finished_count :])
        started_s = self.clock.now_s()
        self.first = [design for design in self.first if design not in self.ledger.numbers]
        designs, by = list(self.first[:count]), GIVEN
        changes: list[Event] = []
        if not designs:
            changes = self._choose_effort()
            designs, by = self._propose_designs(count), self.by
            reason = self._enough(designs)
            if reason:
                self._asker.end()
                return reason
        self._check(designs, count, by)
        ahead = max(len(designs) - own, 0)
        ask = Ask(
            told=self._finished_count,
            after=len(self.ledger.trials),
            wanted=count,
            seconds=self.clock.now_s() - started_s,
            by=by,
            events=(*self._news(), *changes),
            worker=self.lease.id,
            at=time.time(),
            ahead=ahead,
            term=self._asker.term,
            releases=self._asker.term is not None,
        )
        new = self.ledger.storage.add(self.ledger.study, designs, ask)
        self.ledger.enter(new)
        self._waiting += new[: len(new) - ahead]
        self._asker.note_ask(len(new), ahead, ask.seconds)
        self._unsaid.clear()
        if self.thinking and by != GIVEN:
            self.thinking.note(ask.seconds, len(new))
        if self._patience and by != GIVEN:
            self._patience.keep()
        return ""

    def _choose_effort(self) -> list[Event]:
        """Set the optimizer's effort for the next request; return the event of a change, if any."""
        if self.thinking is None:
            return []
        changes = effort_changes(self.ledger.storage.events(self.ledger.study))
        return self.thinking.choose(len(self.ledger.trials), self.ledger.finished, changes)

    def _check(self, designs: Sequence[Design], count: int, by: str) -> None:
        """Raise PluginError unless the designs are legal and new."""
        check_suggestions(
            designs,
            self.space,
            by=by,
            wanted=count,
            asked=self.ledger.numbers,
            rungs=0 if by == GIVEN else self._rungs.highest,
        )

    def _propose_designs(self, count: int) -> list[Design]:
        """Return the designs that the optimizer suggests, and collect its events for the record."""
        designs = self.optimizer.ask(count, self.ledger.pending)
        self._unsaid += self.optimizer.events()
        if not designs:
            self._dry = self._known
        return designs

    def _enough(self, designs: Sequence[Design]) -> str:
        """Return why the loop asks for no more designs within the budget; empty if it does."""
        if not designs:
            self._until = len(self.ledger.trials)
            return getattr(self.optimizer, "ended", "") or DRY
        kind, reason = self._judge_progress()
        if reason:
            self._until = 0
            if not self._flying:
                self._unsaid.append(Event(kind=kind, text=reason, told=self._finished_count))
            self._record()
        return reason

    def _judge_progress(self) -> tuple[str, str]:
        """Return the stopping rule that ends the loop, by its kind of event, and the reason."""
        if self.gap is not None:
            events, reason = self.gap.look(self.ledger.finished, self._measured)
            self._unsaid += events
            if reason:
                return REACHED, reason
        return KIND, self._patience.look(self.optimizer) if self._patience else ""

    def _news(self) -> tuple[Event, ...]:
        """Return the optimizer's events that are not in the study's record yet.

        A resumed study produces some of them again.
        """
        if not self._unsaid:
            return ()
        recorded = {(e.kind, e.text) for e in self.ledger.storage.events(self.ledger.study)}
        return tuple(event for event in self._unsaid if (event.kind, event.text) not in recorded)

    def _record(self) -> None:
        """Record the optimizer's remaining events, after it has received all finished trials."""
        self._teach(self.ledger.finished[self._finished_count :])
        self._unsaid += self.optimizer.events()
        self.ledger.storage.record(self.ledger.study, self._news())
        self._unsaid.clear()

    def _submit(self) -> None:
        room = self.executor.capacity - len(self._flying)
        now: Sequence[Trial] = self._waiting[:room]
        if self.executor.barrier:
            now = self._holding.split_suspect(now)
        submitted = {trial.number for trial in now}
        self._waiting = [one for one in self._waiting if one.number not in submitted]
        if not isinstance(
            self.executor, ReportsBegin
        ):  # it begins at once, or does not report when
            self._times.note_trials(now)
        if self.lease.was_blind():  # others may have considered it lost and reissued these trials
            now = self._holding.keep_held(now)
        for trial in now:
            self._flying.add(trial.number)
            task = replace(self.readings.task(trial), only=self._rungs.labels(trial))
            self.executor.submit(self._folders.prepare(task, trial))

    def _collect(self) -> None:
        """Collect and store finished evaluations; wait only briefly if more can be started."""
        called_s = self.clock.now_s()
        wait_s = self._pause_for_s
        outcomes = self.executor.collect(wait_s if self._room > 0 else None)
        if isinstance(self.executor, HasEvents):
            self._unsaid += self.executor.events()
        self._flying.difference_update(outcomes)
        outcomes = {number: self._times.stamp(number, one) for number, one in outcomes.items()}
        if outcomes:
            self.set_aside(outcomes)
            more = self._holding.end(outcomes, self._news())
            self._unsaid.clear()
            self._folders.renew(t.number for t in more if not is_lost(outcomes[t.number]))
            self._waiting = [*more, *self._waiting]
            self._spent_s += sum(outcomes[trial.number].cost_s for trial in more)
        elif self._idle:
            self.clock.sleep(max(0.0, called_s + wait_s - self.clock.now_s()))
        if not self._asker.shares:
            self._learn()

    def _finish_measuring(self) -> None:
        """Wait for the running evaluations (each may take days) and save their outcomes locally."""
        if isinstance(self.executor, ReportsIntermediate):
            self.executor.on_report = unheard
        with suppress(DseError):  # the executor may have been lost with the storage
            while self._flying:
                outcomes = self.executor.collect(None)
                self._flying.difference_update(outcomes)
                self.set_aside({n: self._times.stamp(n, one) for n, one in outcomes.items()})

    def _is_awaiting_others(self) -> bool:
        """Return whether to wait for trials of other drivers, which may free budget or be rerun."""
        return self.lingers and any(number < self._until for number in self.ledger.open)

    def _pause(self) -> None:
        self.clock.sleep(self._pause_for_s)
        if not self._asker.shares:
            self._learn()

    @property
    def _pause_for_s(self) -> float:
        return self._asker.pause_s if self._asker.shares else self._pause_s

    def _learn(self) -> None:
        """Read the trials that any driver has added or finished since the last call."""
        known = len(self.ledger.trials)
        news = self.ledger.read()
        changed = bool(news) or len(self.ledger.trials) > known
        self._pause_s = _SHORTEST_S if changed else min(2 * self._pause_s, _LONGEST_S)
        self._waiting = [trial for trial in self._waiting if trial.number in self.ledger.open]
        self._folders.forget(self._note_news())

    def _note_news(self, reported: int = 0) -> Sequence[Trial]:
        """Update counts and costs for newly finished trials, in recorded order; return the trials.

        Args:
            reported: number of finished trials that ``on_finished`` has already received.
        """
        news = self.ledger.finished[self._noted :]
        unreported = news[max(reported - self._noted, 0) :]
        self._noted += len(news)
        for trial in news:
            self.readings.learn(trial)
            self._measured += trial.measured > 0 or trial.state is State.FAILED
            self._spent_s += trial.cost_s
        for trial in unreported:
            self.on_finished(trial)
        return news

    def _teach(self, finished: Sequence[Trial]) -> None:
        """Pass newly finished trials to the optimizer.

        This is done as late as possible: of many drivers, most never ask their optimizer.
        """
        self.optimizer.tell(teachable(self.optimizer, finished))
        self._finished_count += len(finished)


def teachable(optimizer: Optimizer, finished: Sequence[Trial]) -> list[Trial]:
    """Return the finished trials that the optimizer receives.

    Trials outside the space, and trials at a low fidelity, are included only if the optimizer's
    traits state that it learns from them.
    """
    traits = traits_of(optimizer)
    learns = {
        State.OUTSIDE: traits.learns_outside,
        State.SCREENED: traits.multi_fidelity,
    }
    return [convert_for_optimizer(trial) for trial in finished if learns.get(trial.state, True)]
