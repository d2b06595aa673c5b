"""Main loop of a study: ask for designs, store, evaluate, store, inform the optimizer.

Starting, resuming and continuing a study are the same operation. Any number of processes (drivers)
may loop over one study. At most one of them asks at a time, knowing the complete record, for itself
and in advance for other drivers, which take trials from the queue. Each driver reads the results of
other drivers in the order of the record, and passes them to its optimizer before it asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dse.core.design import Design
from dse.core.metric import FailureKind
from dse.core.space import DesignSpace
from dse.core.trial import Ask, Event, Outcome, State, Trial
from dse.errors import DseError, OutageError, Overtaken
from dse.evaluation.checkpoints import RETRIES, TrialFolders, is_lost
from dse.evaluation.pipeline import MeasurementCache
from dse.evaluation.reporting import unheard
from dse.protocols import (
    EndedByCaller,
    Executor,
    HasEvents,
    Optimizer,
    ReportsBegin,
    ReportsIntermediate,
    traits_of,
)
from dse.study.asking import AskCoordinator, InformedOptimizer, check_suggestions
from dse.study.claimed_trials import ClaimedTrials, Clock, Lease, Times
from dse.study.gap_stopping import GapMonitor
from dse.study.history import TrialFidelities, TrialHistory
from dse.study.stopping_bounds import Bounds, StoppingRules
from dse.study.thinking import ThinkingControl
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
    """Loop of one driver (process that runs a study): optimizer, executor, storage, open trials.

    ``by`` is the optimizer's name in the record. ``first`` are the designs that come before any
    suggestion, such as baselines. ``stages`` gives the rung from which each evaluator runs, for an
    optimizer that climbs a fidelity ladder; a trial's rung is how many earlier trials have its
    design. Without ``lingers`` the loop ends even if other drivers have trials in flight, and takes
    over none of these trials. Only trials with numbers ``below`` a bound are taken from other
    drivers. An idle executor without capacity is waited for; its optional attribute ``ended`` gives
    the reason why no more designs are requested. ``set_aside`` receives outcomes before the storage
    does. With ``drains``, running evaluations are completed if the storage is lost. Once
    ``is_stopped`` returns true, nothing new is requested or begun, and the loop ends with its
    running evaluations. ``gap`` is the stopping rule; ``thinking`` bounds the cost of suggestions.
    """

    space: DesignSpace
    history: TrialHistory
    lease: Lease
    optimizer: Optimizer
    executor: Executor
    readings: MeasurementCache
    bounds: Bounds
    by: str = ""
    first: Sequence[Design] = ()
    stages: Mapping[str, int] = field(default_factory=dict)
    retries: Mapping[FailureKind, int] = field(default_factory=lambda: dict(RETRIES))
    lingers: bool = True
    drains: bool = True
    below: int | None = None
    thinking: ThinkingControl | None = None
    clock: Clock = field(default_factory=Clock)
    gap: GapMonitor | None = None
    is_stopped: Callable[[], bool] = lambda: False
    on_finished: Callable[[Trial], None] | None = None
    set_aside: Callable[[Mapping[int, Outcome]], None] = lambda _: None

    _holding: ClaimedTrials = field(init=False)
    _asker: AskCoordinator = field(init=False)
    _waiting: list[Trial] = field(default_factory=list, init=False)
    _suggester: InformedOptimizer = field(init=False)
    _rungs: TrialFidelities = field(init=False)
    _flying: set[int] = field(default_factory=set, init=False)
    _folders: TrialFolders = field(init=False)
    _times: Times = field(init=False)
    _informant: HasEvents | None = field(init=False)
    _reports_begin: bool = field(init=False)
    _noted: int = field(default=0, init=False)
    _idle: bool = field(default=False, init=False)
    _measured: int = field(default=0, init=False)
    _spent_s: float = field(default=0.0, init=False)
    _pause_s: float = field(default=_SHORTEST_S, init=False)
    _until: int = field(default=0, init=False)
    _dry: tuple[int, int] = field(default=(-1, -1), init=False)
    _rules: StoppingRules = field(init=False)

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
        begins_late = self.bounds.is_late(self.clock.now_s() - started_s)
        caller = self.executor if isinstance(self.executor, EndedByCaller) else None
        while not ended:
            raise_lost_interrupt()
            late = self.bounds.is_late(self.clock.now_s() - started_s)
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
                self.clock.sleep(self._pause_for_s)
            else:
                return self._end(reason)
            if not self._asker.shares:
                self._learn()
        return ended

    def _end(self, reason: str) -> str:
        self._learn()
        self._folders.remove_retired()
        self._suggester.record()
        return reason

    @property
    def _room(self) -> int:
        """Number of further trials that the executor accepts at this moment."""
        busy = self.executor.barrier and self._flying
        return 0 if busy else self.executor.capacity - len(self._flying)

    def _remember(self) -> str:
        """Read the study's record and restore the loop's state; return why the study has ended.

        The result is empty if the study continues.
        """
        history = self.history
        stages = self.stages if traits_of(self.optimizer).multi_fidelity else {}
        self._rungs = TrialFidelities(history, stages, whole=self.first)
        begins = self.readings.measured
        self._folders = TrialFolders(history.study, used=begins)
        self._suggester = InformedOptimizer(self.optimizer, history, self.thinking)
        self._rules = StoppingRules(self.bounds.min_improvement, self.gap, self._suggester)
        self._holding = ClaimedTrials(history, self.lease, self.retries, begins=begins)
        self._times = Times(history, kept=begins)
        self._informant = self.executor if isinstance(self.executor, HasEvents) else None
        self._reports_begin = isinstance(self.executor, ReportsBegin)
        if isinstance(self.executor, ReportsBegin):
            self.executor.on_begin = self._times.note
        reported = len(history.finished)  # by an earlier phase of the run, or before it began
        history.read()
        self._asker = AskCoordinator(
            history,
            self.lease,
            clock=self.clock,
            inherit=self._holding.inherit,
            below=self.below,
            lingers=self.lingers,
        )
        self._folders.sweep(history.finished)
        storage, study = history.storage, history.study
        self._spent_s = sum(attempt.cost_s for attempt in storage.attempts(study))
        self._note_news(reported)
        return self._rules.recall(self.by)

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
            self._folders.retire(self._note_news())  # a take that gives trials reads the record

    def _ask(self) -> str:
        """Ask for new designs if any driver needs some; return why the study ends, else ``''``.

        The loop is idle if this driver needs designs that only another driver may add.
        """
        while True:
            own = self._count_own()
            ahead = self._asker.count_ahead(own, holds=bool(self._flying))
            self._idle = own > 0 and not self._asker.is_free()
            if self._idle or own + ahead <= 0 or not self._asker.is_free():
                return ""
            if not self._asker.knows:
                self._learn()
            room = self.bounds.room(
                asked=len(self.history.trials),
                finished=len(self.history.finished),
                measured=self._measured,
                under_way=len(self.history.open),
                spent_s=self._spent_s,
            )
            self._until = room.until
            count = min(own + min(ahead, room.affordable), room.count)
            if count <= 0 or self._dry == self.history.sizes:
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

        If suggestions cost too much, more designs are requested at once; the surplus waits in the
        queue.
        """
        room = 0 if self._waiting else max(self._room, 0)
        ahead = self.thinking is not None and self.drains and room > 0
        return max(room, self.thinking.batch) if self.thinking and ahead else room

    def _queue_designs(self, count: int, own: int) -> str:
        """Add up to ``count`` designs, ``own`` for this driver itself; return why none is left.

        Raises:
            Overtaken: another driver added trials in between; nothing was stored.
        """
        self._suggester.teach_news()
        started_s = self.clock.now_s()
        self.first = [design for design in self.first if design not in self.history.numbers]
        designs, by = list(self.first[:count]), GIVEN
        changes: list[Event] = []
        if not designs:
            changes = self._suggester.choose_effort()
            designs, by = self._suggester.propose(count), self.by
            self._dry = self._dry if designs else self.history.sizes
            reason = self._enough(designs)
            if reason:
                self._asker.end()
                return reason
        check_suggestions(
            designs,
            self.space,
            by=by,
            wanted=count,
            asked=self.history.numbers,
            rungs=0 if by == GIVEN else self._rungs.highest,
        )
        ahead = max(len(designs) - own, 0)
        ask = Ask(
            told=self._suggester.finished,
            after=len(self.history.trials),
            wanted=count,
            seconds=self.clock.now_s() - started_s,
            by=by,
            events=(*self._suggester.news(), *changes),
            worker=self.lease.id,
            at=time.time(),
            ahead=ahead,
            term=self._asker.term,
            releases=self._asker.term is not None,
        )
        new = self.history.storage.add(self.history.study, designs, ask)
        self.history.enter(new)
        self._waiting += new[: len(new) - ahead]
        self._asker.note_ask(len(new), ahead, ask.seconds)
        self._suggester.drop_news()
        if self.thinking and by != GIVEN:
            self.thinking.note(ask.seconds, len(new))
        if by != GIVEN:
            self._rules.keep()
        return ""

    def _enough(self, designs: Sequence[Design]) -> str:
        """Return why the loop requests no more designs within the budget; '' if it continues."""
        if not designs:
            self._until = len(self.history.trials)
            return getattr(self.optimizer, "ended", "") or DRY
        kind, reason = self._rules.judge(self._measured)
        if reason:
            self._until = 0
            if not self._flying:
                self._suggester.note(Event(kind=kind, text=reason, told=self._suggester.finished))
            self._suggester.record()
        return reason

    def _submit(self) -> None:
        room = self.executor.capacity - len(self._flying)
        now: Sequence[Trial] = self._waiting[:room]
        if self.executor.barrier:
            now = self._holding.split_suspect(now)
        submitted = {trial.number for trial in now}
        self._waiting = [one for one in self._waiting if one.number not in submitted]
        if not self._reports_begin:
            self._times.note_trials(now)
        if self.lease.was_blind():  # others may have considered it lost and reissued these trials
            now = self._holding.keep_held(now)
        for trial in now:
            self._flying.add(trial.number)
            task = replace(self.readings.task(trial), only=self._rungs.labels(trial))
            self.executor.submit(self._folders.prepare(task, trial))

    def _collect(self) -> None:
        """Collect and store finished evaluations; wait only briefly if more can be started."""
        self._folders.remove_retired()
        called_s = self.clock.now_s()
        wait_s = self._pause_for_s
        outcomes = self.executor.collect(wait_s if self._room > 0 else None)
        if self._informant is not None:
            self._suggester.note(*self._informant.events())
        self._flying.difference_update(outcomes)
        outcomes = {number: self._times.stamp(number, one) for number, one in outcomes.items()}
        if outcomes:
            self.set_aside(outcomes)
            more = self._holding.end(outcomes, self._suggester.news())
            self._suggester.drop_news()
            self._folders.renew(t.number for t in more if not is_lost(outcomes[t.number]))
            self._waiting = [*more, *self._waiting]
            self._spent_s += sum(outcomes[trial.number].cost_s for trial in more)
        elif self._idle:
            self.clock.sleep(max(0.0, called_s + wait_s - self.clock.now_s()))

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
        """Return whether to wait for other drivers' trials: these may free budget or be rerun."""
        return self.lingers and any(number < self._until for number in self.history.open)

    @property
    def _pause_for_s(self) -> float:
        return self._asker.pause_s if self._asker.shares else self._pause_s

    def _learn(self) -> None:
        """Read the trials that any driver has added or finished since the last call."""
        known = len(self.history.trials)
        news = self.history.read()
        changed = bool(news) or len(self.history.trials) > known
        self._pause_s = _SHORTEST_S if changed else min(2 * self._pause_s, _LONGEST_S)
        self._waiting = [trial for trial in self._waiting if trial.number in self.history.open]
        self._folders.retire(self._note_news())

    def _note_news(self, reported: int = 0) -> Sequence[Trial]:
        """Update counts and costs for newly finished trials, in recorded order; return the trials.

        Args:
            reported: number of finished trials that ``on_finished`` has already received.
        """
        news = self.history.finished[self._noted :]
        unreported = news[max(reported - self._noted, 0) :]
        self._noted += len(news)
        for trial in news:
            self.readings.learn(trial)
            self._measured += trial.measured > 0 or trial.state is State.FAILED
            self._spent_s += trial.cost_s
        if self.on_finished is not None:
            for trial in unreported:
                self.on_finished(trial)
        return news
