"""Discrete-event simulation of many drivers of one study, with the real main loops.

Each driver is a thread with a :class:`~dse.study.loop.Loop` of its own. One thread runs at a time:
the one that wakes next on the simulated clock. Operations that take time on a real machine (an
evaluation, an ask, a transaction) sleep on that clock, so that hours of a thousand drivers take a
minute.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Thread
from typing import Any, cast

from dse.core.design import Design
from dse.core.parameter import Integer
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.trial import Driver, Outcome, State
from dse.evaluation.pipeline import MeasurementCache, Pipeline
from dse.evaluation.reporting import Watcher, unheard
from dse.optimizers.random_search import RandomSearch
from dse.protocols import Storage, Task
from dse.storage.memory import MemoryStorage
from dse.study.claimed_trials import Clock, Lease
from dse.study.history import TrialHistory
from dse.study.loop import Loop
from dse.study.stopping_bounds import Bounds

STUDY = "simulated"

_WRITES = ("add", "finish", "claim", "retry", "acquire_asker", "release_asker", "enter", "leave")
"""Storage calls that write to a study, and are serialized."""

_OTHERS = ("take", "since", "trials", "finished_order", "drivers", "events", "attempts", "record")
_QUEUEING = ("take", "acquire_asker", "release_asker")


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Settings of a simulated fleet of drivers.

    ``evaluate_s`` maps a driver's index and a trial's number to the seconds of its evaluation,
    ``ask_s`` a number of designs to the seconds of an ask, and ``ask_slower`` a driver's index to a
    factor on the latter. Every storage call takes ``transaction_s`` seconds, and writes wait for
    other writes. Without a ``queue`` the storage lacks the queue methods, so drivers race for each
    ask. A driver takes up to ``batch`` trials together and evaluates them in sequence. ``dies_at``
    maps a driver's index to the ask (counted from 1) in which it dies; ``starts_at_s`` maps it to
    its start time, by default 0.
    """

    drivers: int
    evaluate_s: Callable[[int, int], float]
    ask_s: Callable[[int], float]
    time_s: float | None = None
    trials: int | None = None
    transaction_s: float = 0.002
    queue: bool = True
    batch: int = 1
    dies_at: dict[int, int] = field(default_factory=dict)
    starts_at_s: Callable[[int], float] = lambda _: 0.0
    ask_slower: Callable[[int], float] = lambda _: 1.0


@dataclass(kw_only=True)
class Account:
    """Results of the simulation.

    ``evaluated_s`` and ``trials`` are by driver index, ``transactions`` by storage method;
    ``evaluated_s`` counts only evaluation before the fleet's ``time_s``.
    """

    fleet: Fleet
    storage: MemoryStorage
    problem: Problem
    seconds: float = 0.0
    asks: int = 0
    most_waiting: int = 0
    evaluated_s: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    trials: Counter[int] = field(default_factory=Counter)
    transactions: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Utilization: fraction of the drivers' total time that was spent on evaluation."""
        over_s = self.fleet.time_s or self.seconds
        return sum(self.evaluated_s.values()) / (over_s * self.fleet.drivers)

    @property
    def asks_lost(self) -> int:
        """Number of asks that were computed but not stored."""
        return self.asks - len(self.storage.asks(STUDY))

    @property
    def transactions_per_trial(self) -> float:
        """Mean number of storage calls per finished trial."""
        return self.transactions.total() / max(1, self.trials.total())


def simulate(fleet: Fleet) -> Account:
    """Simulate a fleet of drivers and return the results.

    Raises:
        RuntimeError: a driver raised an exception.
    """
    problem = Problem(
        space=DesignSpace(parameters=tuple(Integer(name=n, low=0, high=99) for n in "abc")),
        sources={},
        objectives=(),
    )
    storage = MemoryStorage()
    storage.create(STUDY, {})
    account = Account(fleet=fleet, storage=storage, problem=problem)
    world = _World()
    for place in range(fleet.drivers):
        drive = _Drive(place, world, account)
        world.add(drive.go, fleet.starts_at_s(place))
    world.run()
    account.seconds = world.now_s()
    return account


class Died(BaseException):
    """Raised in a driver's thread to simulate that it is killed during an ask."""


class _World(Clock):
    """Simulated clock and scheduler: the threads, and the order in which they wake up."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.written_s = 0.0  # time at which the last write completes
        self.dead: set[int] = set()
        self._chance = random.Random(0)
        self._now_s = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, Event]] = []
        self._threads: list[Thread] = []
        self._over = Event()

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        wakes = self._wait_until(self._now_s + max(0.0, seconds))
        self._hand_over()
        wakes.wait()

    def draw_s(self, low_s: float, high_s: float) -> float:
        return self._chance.uniform(low_s, high_s)

    def add(self, act: Callable[[], None], at_s: float) -> None:
        """Add a thread that begins at a simulated time."""
        begins = self._wait_until(at_s)

        def live() -> None:
            begins.wait()
            try:
                act()
            except Died:
                pass
            except BaseException as error:  # noqa: BLE001 - `run` raises in the caller's thread
                self.failure = self.failure or error
            self._hand_over()

        self._threads.append(Thread(target=live, daemon=True))

    def run(self) -> None:
        """Run all threads to completion."""
        for thread in self._threads:
            thread.start()
        self._hand_over()
        self._over.wait()
        if self.failure is not None:
            raise RuntimeError("a simulated driver failed") from self.failure

    def _wait_until(self, at_s: float) -> Event:
        event = Event()
        heapq.heappush(self._sleepers, (at_s, next(self._order), event))
        return event

    def _hand_over(self) -> None:
        """Wake the thread that is due next; the calling thread has to sleep or end."""
        if not self._sleepers or self.failure is not None:
            self._over.set()
            return
        self._now_s, _, event = heapq.heappop(self._sleepers)
        event.set()


class _Metered:
    """Storage proxy with call counts and simulated delays; it may hide the queue methods."""

    def __init__(self, world: _World, account: Account) -> None:
        self._world = world
        self._account = account

    def __getattr__(self, name: str) -> Any:  # whatever the storage has
        if name in _QUEUEING and not self._account.fleet.queue:
            raise AttributeError(name)
        method = getattr(self._account.storage, name)
        if name not in _WRITES and name not in _OTHERS:
            return method

        def metered(*arguments: Any, **named: Any) -> Any:
            self._spend(name)
            return method(*arguments, **named)

        return metered

    def _spend(self, name: str) -> None:
        account, now_s = self._account, self._world.now_s()
        account.transactions[name] += 1
        done_s = now_s + account.fleet.transaction_s
        if name in _WRITES:
            done_s = max(now_s, self._world.written_s) + account.fleet.transaction_s
            self._world.written_s = done_s
        self._world.sleep(done_s - now_s)


class _Place(Lease):
    """Lease without heartbeats: other drivers know at once which drivers have died."""

    def __enter__(self) -> _Place:
        self.id = self._storage.enter(self._study, Driver())
        return self

    def __exit__(self, *ending: object) -> None:
        if ending[0] is not Died:
            self._storage.leave(self._study, self.id)

    dead: Set[int] = frozenset()

    def _is_lost(self, driver: Driver, now: float) -> bool:  # noqa: ARG002 - by no clock
        return driver.id in self.dead


class _Drive:
    """Simulated driver: it runs a loop, and is its optimizer and its executor."""

    barrier = True

    def __init__(self, place: int, world: _World, account: Account) -> None:
        self.capacity = account.fleet.batch
        self.on_report: Watcher = unheard
        self._place = place
        self._world = world
        self._account = account
        self._tasks: list[Task] = []
        self._asks = 0
        self._random = RandomSearch(account.problem)

    def go(self) -> None:
        account, world, fleet = self._account, self._world, self._account.fleet
        storage = cast(Storage, _Metered(world, account))
        lease = _Place(storage, STUDY)
        lease.dead = world.dead
        with lease:
            self._id = lease.id
            Loop(
                space=account.problem.space,
                history=TrialHistory(storage, STUDY),
                lease=lease,
                optimizer=self,
                by="random",
                executor=self,
                readings=MeasurementCache(Pipeline([])),
                bounds=Bounds(trials=fleet.trials, time_s=fleet.time_s),
                clock=world,
            ).run()

    def ask(self, wanted: int, pending: Sequence[Design] = ()) -> list[Design]:
        account = self._account
        spent_s = account.fleet.ask_s(wanted) * account.fleet.ask_slower(self._place)
        self._asks += 1
        if self._asks == account.fleet.dies_at.get(self._place):
            self._world.sleep(spent_s / 2)
            self._world.dead.add(self._id)
            raise Died
        self._world.sleep(spent_s)
        account.asks += 1
        return self._random.ask(wanted, pending)

    def tell(self, finished: Any) -> None:
        self._random.tell(finished)

    def events(self) -> list[Any]:
        return []

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:  # noqa: ARG002 - it works while it is asked
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            began_s, account = self._world.now_s(), self._account
            self._world.sleep(account.fleet.evaluate_s(self._place, task.number))
            until_s = min(self._world.now_s(), account.fleet.time_s or float("inf"))
            account.evaluated_s[self._place] += max(0.0, until_s - began_s)
            account.trials[self._place] += 1
        return {task.number: Outcome(state=State.DONE) for task in tasks}

    def close(self) -> None:
        """Do nothing."""
