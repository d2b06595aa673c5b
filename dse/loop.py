"""The one loop: ask, store, evaluate, store, tell. Starting, resuming and going on are the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dse.core.design import Design
from dse.core.trial import State, Trial
from dse.pipeline import Readings
from dse.protocols import Executor, Optimizer, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """When to stop asking; ``None`` is no bound."""

    measurements: int | None = None
    trials: int | None = None
    time_s: float | None = None


@dataclass(kw_only=True)
class Loop:
    """One run of a study: everything that it needs, and the trials on their way.

    ``first`` are designs that come before anything the optimizer asks: the baselines.
    """

    study: str
    storage: Storage
    optimizer: Optimizer
    executor: Executor
    readings: Readings
    bounds: Bounds
    first: Sequence[Design] = ()
    on_finished: Callable[[Trial], None] = lambda _: None

    _waiting: list[Trial] = field(default_factory=list, init=False)
    _flying: dict[int, Trial] = field(default_factory=dict, init=False)
    _asked: int = field(default=0, init=False)
    _told: int = field(default=0, init=False)
    _measured: int = field(default=0, init=False)
    _spent_s: float = field(default=0.0, init=False)

    def run(self) -> str:
        """Run until a bound is met or nothing is left; the reason is returned."""
        started = time.perf_counter()
        self._remember()
        before_s = self._spent_s
        while True:
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

    def _remember(self) -> None:
        """Tell the optimizer the record; take up again what was not finished."""
        trials = self.storage.trials(self.study)
        asked = {trial.design for trial in trials}
        self.first = [design for design in self.first if design not in asked]
        self._asked = len(trials)
        self._tell([trials[number] for number in self.storage.finished_order(self.study)])
        self._waiting = [trial for trial in trials if not trial.state.finished]

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
        if not designs:
            return "no design is left to ask"
        self._waiting = self.storage.add(self.study, designs, self._told)
        self._asked += len(designs)
        return ""

    def _record(self) -> None:
        """Keep what the optimizer has to say, once: a study that is gone on with says it again."""
        events = self.optimizer.events()
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
        return left, reason

    def _submit(self) -> None:
        room = self.executor.capacity - len(self._flying)
        now, self._waiting = self._waiting[:room], self._waiting[room:]
        if not now:
            return
        self.storage.move(self.study, [trial.number for trial in now], State.RUNNING)
        for trial in now:
            self._flying[trial.number] = trial
            self.executor.submit(self.readings.task(trial))

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
        learns = getattr(self.optimizer, "learns_outside", False)
        told = [trial for trial in finished if learns or trial.state is not State.OUTSIDE]
        self.optimizer.tell(told)
        self._told += len(told)
