"""The one loop: ask, store, evaluate, store, tell. Starting, resuming and going on are the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dse.core.design import Design
from dse.core.trial import Event, State, Trial
from dse.optimizers.patience import KIND, Patience, suggestions
from dse.pipeline import Readings
from dse.protocols import Executor, Optimizer, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """When to stop asking; ``None`` is no bound.

    ``cost`` is in dollars, at ``price_per_s`` for each second of evaluation; ``gain`` is the share
    of the hypervolume that a suggestion has to promise.
    """

    measurements: int | None = None
    trials: int | None = None
    time_s: float | None = None
    cost: float | None = None
    price_per_s: float | None = None
    gain: float | None = None


@dataclass(kw_only=True)
class Loop:
    """One run of a study: everything that it needs, and the trials on their way.

    ``first`` are designs that come before anything the optimizer asks: the baselines. ``stages``
    tell at which rung an evaluator runs for an optimizer that climbs: the rung of a trial is how
    often its design was asked before.
    """

    study: str
    storage: Storage
    optimizer: Optimizer
    executor: Executor
    readings: Readings
    bounds: Bounds
    first: Sequence[Design] = ()
    stages: Mapping[str, int] = field(default_factory=dict)
    on_finished: Callable[[Trial], None] = lambda _: None

    _waiting: list[Trial] = field(default_factory=list, init=False)
    _flying: dict[int, Trial] = field(default_factory=dict, init=False)
    _asked: int = field(default=0, init=False)
    _whole: frozenset[Design] = field(default=frozenset(), init=False)
    _numbers: dict[Design, list[int]] = field(default_factory=dict, init=False)
    _told: int = field(default=0, init=False)
    _measured: int = field(default=0, init=False)
    _spent_s: float = field(default=0.0, init=False)
    _patience: Patience | None = field(default=None, init=False)

    def run(self) -> str:
        """Run until a bound is met or nothing is left; the reason is returned."""
        started = time.perf_counter()
        ended = self._remember()
        before_s = self._spent_s
        while not ended:
            self._submit()
            spent_s = before_s + time.perf_counter() - started
            late = self.bounds.time_s is not None and spent_s >= self.bounds.time_s
            reason = "the time is used up" if late else self._ask()
            if self._waiting and len(self._flying) < self.executor.capacity:
                continue
            if not self._flying:
                self._record()
                return reason
            self._collect()
        return ended

    def _remember(self) -> str:
        """Tell the optimizer the record; take up what was not finished. Or why it has ended."""
        trials = self.storage.trials(self.study)
        finished = [trials[number] for number in self.storage.finished_order(self.study)]
        self._number(trials)
        self._whole = frozenset(self.first)
        self.first = [design for design in self.first if design not in self._numbers]
        self._asked = len(trials)
        self._waiting = [trial for trial in trials if not trial.state.finished]
        if self.bounds.gain is None:
            self._tell(finished)
            return ""
        self._patience = Patience(self.bounds.gain)
        ended = self._patience.ended(self.storage.events(self.study), trials)
        if ended:
            return ended
        told = self._teachable(finished)
        numbers = {trial.number for trial in told}
        self._tell([trial for trial in finished if trial.number not in numbers])
        last = suggestions(trials, told, self._whole)
        self._patience.recall(self.optimizer, self._tell, told, last)
        return ""

    def _ask(self) -> str:
        """Queue new designs where there is room; else say why there are none."""
        room = self.executor.capacity - len(self._flying)
        if room <= 0 or self._waiting or (self.executor.barrier and self._flying):
            return ""
        left, reason = self._left()
        count = min(room, left)
        if count <= 0:
            return reason
        designs, self.first = list(self.first[:count]), self.first[count:]
        if not designs:
            designs = self.optimizer.ask(count, [t.design for t in self._flying.values()])
            self._record()
            reason = self._patience.look(self.optimizer) if self._patience else ""
            if reason:
                self._record(
                    *([] if self._flying else [Event(kind=KIND, text=reason, told=self._told)])
                )
                return reason
        if not designs:
            return "no design is left to ask"
        self._waiting = self.storage.add(self.study, designs, self._told)
        self._number(self._waiting)
        self._asked += len(designs)
        return ""

    def _record(self, *more: Event) -> None:
        """Keep what the optimizer has to say, once: a study that is gone on with says it again."""
        events = [*self.optimizer.events(), *more]
        if events:
            said = {(event.kind, event.text) for event in self.storage.events(self.study)}
            new = [event for event in events if (event.kind, event.text) not in said]
            self.storage.record(self.study, new)

    def _left(self) -> tuple[int, str]:
        """How many trials may still be asked, and what is used up when none."""
        left, reason = 1 << 30, ""
        if self.bounds.trials is not None:
            left = self.bounds.trials - self._asked
            reason = f"{self.bounds.trials} trials are done"
        if self.bounds.measurements is not None:
            unused = self.bounds.measurements - self._measured - len(self._flying)
            if unused < left:
                left = unused
                reason = f"{self.bounds.measurements} measurements are done"
        cost, price_per_s = self.bounds.cost, self.bounds.price_per_s or 0.0
        if cost is not None and self._spent_s * price_per_s >= cost:
            left, reason = 0, f"{cost:g} $ are spent"
        return left, reason

    def _submit(self) -> None:
        room = self.executor.capacity - len(self._flying)
        now, self._waiting = self._waiting[:room], self._waiting[room:]
        if not now:
            return
        self.storage.move(self.study, [trial.number for trial in now], State.RUNNING)
        for trial in now:
            self._flying[trial.number] = trial
            task = self.readings.task(trial)
            self.executor.submit(replace(task, only=self._only(trial)))

    def _number(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._numbers.setdefault(trial.design, []).append(trial.number)

    def _only(self, trial: Trial) -> frozenset[str] | None:
        """The evaluators of the trial's rung; all but for an optimizer that climbs."""
        if not getattr(self.optimizer, "climbs", False) or trial.design in self._whole:
            return None
        rung = self._numbers[trial.design].index(trial.number)
        if rung >= max(self.stages.values(), default=0):
            return None
        return frozenset(label for label, stage in self.stages.items() if stage <= rung)

    def _collect(self) -> None:
        outcomes = self.executor.collect()
        self.storage.finish(self.study, outcomes)
        done = [self._flying.pop(number).finished(outcome) for number, outcome in outcomes.items()]
        self._tell(done)
        for trial in done:
            self.on_finished(trial)

    def _tell(self, finished: Sequence[Trial]) -> None:
        for trial in finished:
            self.readings.learn(trial)
            self._measured += trial.measured > 0 or trial.state is State.FAILED
            self._spent_s += trial.cost_s
        told = self._teachable(finished)
        self.optimizer.tell(told)
        self._told += len(told)

    def _teachable(self, finished: Sequence[Trial]) -> list[Trial]:
        learns = {
            State.OUTSIDE: getattr(self.optimizer, "learns_outside", False),
            State.SCREENED: getattr(self.optimizer, "climbs", False),
        }
        return [trial for trial in finished if learns.get(trial.state, True)]
