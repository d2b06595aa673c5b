"""The one loop: ask, store, evaluate, store, tell. Starting, resuming and going on are the same.

Any number of processes may loop over one study. Each learns what the others found in the order of
the record, and asks only with all of it known: who was overtaken learns and asks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dse.checkpoints import TrialFolders, is_lost
from dse.core.design import Design
from dse.core.metric import FaultKind
from dse.core.space import Space
from dse.core.trial import Ask, Event, Outcome, State, Trial
from dse.drivers.bounds import Bounds
from dse.drivers.holding import Holding
from dse.drivers.lease import Lease
from dse.drivers.ledger import Ledger, moments
from dse.drivers.retries import RETRIES
from dse.drivers.suggestions import check_suggestions
from dse.early import unheard
from dse.early_rules import as_told
from dse.errors import DseError, OutageError, Overtaken
from dse.optimizers.patience import KIND, PATIENCE, Patience, Suggestion
from dse.pipeline import Readings
from dse.protocols import Executor, Optimizer

GIVEN = "(given)"
"""Who asked for baselines and designs of earlier studies: no optimizer did."""

LATE = "the time is used up"
DRY = "no design is left to ask"

_SHORTEST_S, _LONGEST_S = 0.01, 1.0
"""Between two looks at what others do; each wait in vain doubles it."""


@dataclass(kw_only=True)
class Loop:
    """One run over a study: everything that it needs, and the trials on their way.

    ``by`` is what the record calls the optimizer. ``first`` are designs that come before anything
    that it asks: the baselines. ``stages`` tell at which rung an evaluator runs for an optimizer
    that climbs: the rung of a trial is how often its design was asked before. A loop that does not
    ``linger`` ends although others have trials in flight. An executor that takes nothing although
    it is idle is waited for; it may have an attribute ``ended``: why nothing is asked any more.
    ``set_aside`` is given outcomes before anything else is asked of the storage. A loop that
    ``drains`` lets what is being measured end where the storage stays away.
    """

    space: Space
    ledger: Ledger
    lease: Lease
    optimizer: Optimizer
    executor: Executor
    readings: Readings
    bounds: Bounds
    by: str = ""
    first: Sequence[Design] = ()
    stages: Mapping[str, int] = field(default_factory=dict)
    retries: Mapping[FaultKind, int] = field(default_factory=lambda: dict(RETRIES))
    lingers: bool = True
    drains: bool = True
    on_finished: Callable[[Trial], None] = lambda _: None
    set_aside: Callable[[Mapping[int, Outcome]], None] = lambda _: None

    _holding: Holding = field(init=False)
    _waiting: list[Trial] = field(default_factory=list, init=False)
    _whole: frozenset[Design] = field(default=frozenset(), init=False)
    _flying: set[int] = field(default_factory=set, init=False)
    _folders: TrialFolders = field(init=False)
    _begun: dict[int, float] = field(default_factory=dict, init=False)
    _told: int = field(default=0, init=False)
    _measured: int = field(default=0, init=False)
    _spent_s: float = field(default=0.0, init=False)
    _pause_s: float = field(default=_SHORTEST_S, init=False)
    _until: int = field(default=0, init=False)
    _dry: tuple[int, int] = field(default=(-1, -1), init=False)
    _unsaid: list[Event] = field(default_factory=list, init=False)
    _patience: Patience | None = field(default=None, init=False)

    def run(self) -> str:
        """Run until a bound is met or nothing is left; the reason is returned.

        Raises:
            OutageError: the storage was away for too long; outcomes are set aside.
        """
        try:
            return self._run()
        except OutageError:
            if self.drains:
                self._finish_measuring()
            raise

    def _run(self) -> str:
        started = time.perf_counter()
        ended = self._remember()
        before_s = self._spent_s
        while not ended:
            self._take_up()
            self._submit()
            spent_s = before_s + time.perf_counter() - started
            late = self.bounds.time_s is not None and spent_s >= self.bounds.time_s
            over = LATE if late else getattr(self.executor, "ended", "")
            reason = over or self._ask()
            if self._waiting and self._room > 0:
                continue
            if reason:
                getattr(self.executor, "report_exhaustion", _ignore)()
            if self._flying or not reason:
                self._collect()
            elif not over and self._awaited():
                self._pause()
            else:
                self._record()
                return reason
        return ended

    @property
    def _room(self) -> int:
        """How many more trials the executor takes."""
        busy = self.executor.barrier and self._flying
        return 0 if busy else self.executor.capacity - len(self._flying)

    def _remember(self) -> str:
        """Tell the optimizer the record. Or why the study has ended."""
        ledger, self._whole = self.ledger, frozenset(self.first)
        begins = self.readings.measured
        self._folders = TrialFolders(ledger.study, used=begins)
        self._holding = Holding(ledger, self.lease, self.retries, begins=begins)
        if hasattr(self.executor, "on_begin"):
            self.executor.on_begin = self._note_begin
        for trial in ledger.read():
            self.on_finished(trial)
        self._folders.sweep(ledger.finished)
        storage, study = ledger.storage, ledger.study
        self._spent_s = sum(attempt.cost_s for attempt in storage.attempts(study))
        if self.bounds.gain is None:
            self._tell(ledger.finished)
            return ""
        self._patience = Patience(self.bounds.gain)
        ended = self._patience.ended(storage.events(study), ledger.trials)
        if ended:
            return ended
        asks = [ask for ask in storage.asks(study) if ask.by == self.by]
        last = [
            Suggestion(one.ask.told, one.ask.wanted or one.ask.count, one.pending)
            for one in moments(asks[-(PATIENCE - 1) :], ledger.trials, ledger.finished)
        ]
        self._patience.recall(self.optimizer, self._tell, ledger.finished, last)
        return ""

    def _take_up(self) -> None:
        """Claim what nobody works at, or somebody who is lost, as far as there is room."""
        own = self._flying.union(trial.number for trial in self._waiting)
        self._waiting += self._holding.taken(self._room - len(self._waiting), own)

    def _ask(self) -> str:
        """Queue new designs where there is room; else say why there are none."""
        while self._room > 0 and not self._waiting:
            room = self.bounds.room(
                asked=len(self.ledger.trials),
                measured=self._measured,
                under_way=len(self.ledger.open),
                spent_s=self._spent_s,
            )
            self._until = room.until
            count = min(self._room, room.count)
            if count <= 0:
                return room.reason
            try:
                return self._asked(count)
            except Overtaken:
                self._learn()
        return ""

    def _asked(self, count: int) -> str:
        """Queue up to ``count`` designs, or say why there are none.

        Raises:
            Overtaken: somebody else added trials in between; nothing has happened.
        """
        started = time.perf_counter()
        self.first = [design for design in self.first if design not in self.ledger.numbers]
        designs, by = list(self.first[:count]), GIVEN
        if not designs:
            designs, by = self._proposed(count), self.by
            reason = self._enough(designs)
            if reason:
                return reason
        self._check(designs, count, by)
        ask = Ask(
            told=self._told,
            after=len(self.ledger.trials),
            wanted=count,
            seconds=time.perf_counter() - started,
            by=by,
            events=self._news(),
            worker=self.lease.id,
            at=time.time(),
        )
        self._waiting = self.ledger.storage.add(self.ledger.study, designs, ask)
        self.ledger.enter(self._waiting)
        self._unsaid.clear()
        if self._patience and by != GIVEN:
            self._patience.keep()
        return ""

    def _check(self, designs: Sequence[Design], count: int, by: str) -> None:
        """Nothing, if the designs may be kept. Raises PluginError if not."""
        climbs = by != GIVEN and getattr(self.optimizer, "climbs", False)
        check_suggestions(
            designs,
            self.space,
            by=by,
            wanted=count,
            asked=self.ledger.numbers,
            rungs=max(self.stages.values(), default=0) if climbs else 0,
        )

    def _proposed(self, count: int) -> list[Design]:
        """What the optimizer asks; it is not asked again before something has changed."""
        now = self._told, len(self.ledger.trials)
        if self._dry == now:
            return []
        designs = self.optimizer.ask(count, self.ledger.pending)
        self._unsaid += self.optimizer.events()
        if not designs:
            self._dry = now
        return designs

    def _enough(self, designs: Sequence[Design]) -> str:
        """Why nothing is asked although the budget allows it; empty where it is."""
        if not designs:
            self._until = len(self.ledger.trials)
            return getattr(self.optimizer, "ended", "") or DRY
        reason = self._patience.look(self.optimizer) if self._patience else ""
        if reason:
            self._until = 0
            if not self._flying:
                self._unsaid.append(Event(kind=KIND, text=reason, told=self._told))
            self._record()
        return reason

    def _news(self) -> tuple[Event, ...]:
        """What is to be said and is not in the record: a study that goes on says it again."""
        if not self._unsaid:
            return ()
        said = {(e.kind, e.text) for e in self.ledger.storage.events(self.ledger.study)}
        return tuple(event for event in self._unsaid if (event.kind, event.text) not in said)

    def _record(self) -> None:
        """Keep what the optimizer has to say beside its suggestions."""
        self._unsaid += self.optimizer.events()
        self.ledger.storage.record(self.ledger.study, self._news())
        self._unsaid.clear()

    def _submit(self) -> None:
        room = self.executor.capacity - len(self._flying)
        now, self._waiting = self._waiting[:room], self._waiting[room:]
        if not hasattr(self.executor, "on_begin"):  # it begins at once, or does not say when
            self._note_begun({trial.number: time.time() for trial in now})
        for trial in now:
            self._flying.add(trial.number)
            task = replace(self.readings.task(trial), only=self._only(trial))
            self.executor.submit(self._folders.prepare(task, trial))

    def _note_begin(self, number: int, at: float) -> None:
        with suppress(OutageError):  # within an executor, which holds outcomes: the next call tells
            self._note_begun({number: at})

    def _note_begun(self, begun: Mapping[int, float]) -> None:
        """Keep when trials were begun: what is free to evaluate again is noted at its end only."""
        self._begun |= begun
        if begun and self.readings.measured:
            self.ledger.storage.begin(self.ledger.study, begun)

    def _timed(self, number: int, outcome: Outcome) -> Outcome:
        """Return the outcome with its times, where the executor has not set them."""
        begun_at = self._begun.pop(number, None)
        if outcome.finished_at is not None:
            return outcome
        return replace(outcome, begun_at=outcome.begun_at or begun_at, finished_at=time.time())

    def _only(self, trial: Trial) -> frozenset[str] | None:
        """The evaluators of the trial's rung; all but for an optimizer that climbs."""
        if not getattr(self.optimizer, "climbs", False) or trial.design in self._whole:
            return None
        rung = self.ledger.numbers[trial.design].index(trial.number)
        if rung >= max(self.stages.values(), default=0):
            return None
        return frozenset(label for label, stage in self.stages.items() if stage <= rung)

    def _collect(self) -> None:
        """Keep what has come back; where there is room for more, no longer than a while."""
        outcomes = self.executor.collect(self._pause_s if self._room > 0 else None)
        self._unsaid += getattr(self.executor, "events", list)()
        self._flying.difference_update(outcomes)
        outcomes = {number: self._timed(number, one) for number, one in outcomes.items()}
        if outcomes:
            self.set_aside(outcomes)
            more = self._holding.end(outcomes, self._news())
            self._unsaid.clear()
            self._folders.renew(t.number for t in more if not is_lost(outcomes[t.number]))
            self._waiting = [*more, *self._waiting]
            self._spent_s += sum(outcomes[trial.number].cost_s for trial in more)
        self._learn()

    def _finish_measuring(self) -> None:
        """Let what is being measured end: an evaluation may have taken days."""
        if hasattr(self.executor, "on_report"):
            self.executor.on_report = unheard
        with suppress(DseError):  # the executor may have been lost with the storage
            while self._flying:
                outcomes = self.executor.collect(None)
                self._flying.difference_update(outcomes)
                self.set_aside({n: self._timed(n, one) for n, one in outcomes.items()})

    def _awaited(self) -> bool:
        """True while others have in flight what may make room, or what they may lose."""
        return self.lingers and any(number < self._until for number in self.ledger.open)

    def _pause(self) -> None:
        time.sleep(self._pause_s)
        self._learn()

    def _learn(self) -> None:
        """Tell what was finished by anyone, in the order of the record."""
        known = len(self.ledger.trials)
        news = self.ledger.read()
        changed = bool(news) or len(self.ledger.trials) > known
        self._pause_s = _SHORTEST_S if changed else min(2 * self._pause_s, _LONGEST_S)
        self._waiting = [trial for trial in self._waiting if trial.number in self.ledger.open]
        self._tell(self.ledger.finished[self._told :])
        self._folders.forget(news)
        for trial in news:
            self.on_finished(trial)

    def _tell(self, finished: Sequence[Trial]) -> None:
        for trial in finished:
            self.readings.learn(trial)
            self._measured += trial.measured > 0 or trial.state is State.FAILED
            self._spent_s += trial.cost_s
        self.optimizer.tell(teachable(self.optimizer, finished))
        self._told += len(finished)


def _ignore() -> None:
    """Nothing: most executors take what comes."""


def teachable(optimizer: Optimizer, finished: Sequence[Trial]) -> list[Trial]:
    """The trials that the optimizer is told: of some states only if it says so."""
    learns = {
        State.OUTSIDE: getattr(optimizer, "learns_outside", False),
        State.SCREENED: getattr(optimizer, "climbs", False),
    }
    return [as_told(trial) for trial in finished if learns.get(trial.state, True)]
