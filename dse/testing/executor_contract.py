"""Contract tests of an executor: subclass, override one fixture, run pytest.

.. code-block:: python

    class TestMine(ExecutorContract):
        @pytest.fixture
        def make(self):
            return functools.partial(Mine, workers=2)

Executors that isolate the driver from crashes have a further contract: see ``isolation_contract``.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator

import pytest

from dse.core.metric import Failure
from dse.core.trial import Outcome, State
from dse.protocols import Executor, Work
from dse.system.process_tree import runs
from dse.testing.work import perform, task

LONG_S = 300.0
"""Timeout in seconds: longer than any action of ``dse.testing.work``, even on slow workers."""


def collected(executor: Executor, count: int) -> dict[int, Outcome]:
    """Collect the next ``count`` outcomes; fewer if the executor returns no more."""
    outcomes: dict[int, Outcome] = {}
    while len(outcomes) < count:
        more = executor.collect(LONG_S)
        if not more:
            break
        assert not more.keys() & outcomes.keys(), "collected twice"
        outcomes |= more
    return outcomes


def is_alive(pid: int) -> bool:
    """Return whether the process exists; a zombie counts as dead."""
    return runs(pid)


class ExecutorContract:
    """Contract tests of every :class:`~dse.protocols.Executor`."""

    @pytest.fixture
    def make(self) -> Callable[[Work], Executor]:
        """Return the executor's factory, called with the work function: its class, or a partial.

        A ``functools.partial`` carries the executor's options.
        """
        raise NotImplementedError("the contract needs the fixture 'make'")

    @pytest.fixture
    def executor(self, make: Callable[[Work], Executor]) -> Iterator[Executor]:
        """Yield the executor under test."""
        made = make(perform)
        yield made
        made.close()

    def test_it_says_how_much_it_takes_and_whether_all_comes_together(
        self, executor: Executor
    ) -> None:
        assert executor.capacity >= 1
        assert executor.barrier in (True, False)

    def test_every_task_that_was_submitted_is_collected_exactly_once(
        self, executor: Executor
    ) -> None:
        numbers = list(range(3, 3 + 3 * executor.capacity))
        for number in numbers:
            executor.submit(task(number, "square", number))
        outcomes = collected(executor, len(numbers))
        assert {n: o.metrics["square"] for n, o in outcomes.items()} == {n: n * n for n in numbers}
        assert executor.collect(0.1) == {}

    def test_what_comes_later_is_collected_too(self, executor: Executor) -> None:
        for number in range(3):
            executor.submit(task(number, "square", number))
            assert collected(executor, 1)[number].metrics["square"] == number * number

    def test_with_nothing_submitted_nothing_is_collected(self, executor: Executor) -> None:
        assert executor.collect() == {}
        assert executor.collect(0.0) == {}

    def test_nothing_is_collected_when_the_time_is_up(self, executor: Executor) -> None:
        executor.submit(task(0, "sleep", 0.2))
        started = time.monotonic()
        early = executor.collect(0.05)
        assert early or time.monotonic() - started < LONG_S / 2
        assert {**early, **collected(executor, 1 - len(early))}.keys() == {0}

    def test_where_all_comes_back_together_it_does(self, executor: Executor) -> None:
        for number in range(executor.capacity):
            executor.submit(task(number, "square", number))
        first = executor.collect(LONG_S)
        assert len(first) == executor.capacity or not executor.barrier

    def test_work_that_raises_costs_its_own_task_only(self, executor: Executor) -> None:
        executor.submit(task(0, "square", 2))
        executor.submit(task(1, "raise", "the oven is cold"))
        executor.submit(task(2, "square", 3))
        outcomes = collected(executor, 3)
        assert outcomes[1].state is State.FAILED
        assert outcomes[1].failure == Failure(kind="raised", reason="ValueError: the oven is cold")
        assert [outcomes[n].metrics["square"] for n in (0, 2)] == [4, 9]

    def test_its_outcomes_can_be_kept(self, executor: Executor) -> None:
        executor.submit(task(0, "square", 2))
        outcome = collected(executor, 1)[0]
        assert pickle.loads(pickle.dumps(outcome)) == outcome  # noqa: S301 - our own bytes

    def test_after_close_no_worker_is_left(self, executor: Executor) -> None:
        for number in range(executor.capacity):
            executor.submit(task(number, "square", number))
        done = collected(executor, executor.capacity)
        workers = {int(outcome.metrics["pid"]) for outcome in done.values()} - {os.getpid()}
        executor.close()
        assert [pid for pid in workers if is_alive(pid)] == []

    def test_it_can_be_closed_twice(self, executor: Executor) -> None:
        executor.submit(task(0, "square", 2))
        executor.close()
        executor.close()
