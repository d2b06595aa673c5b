"""Contract tests of an executor whose workers may crash or hang, with workers that do.

.. code-block:: python

    class TestMine(IsolationContract):
        @pytest.fixture
        def make(self):
            return functools.partial(Mine, workers=2)

        @pytest.fixture
        def hasty(self):
            return functools.partial(Mine, workers=2, timeout_s=2.0)
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dse.core.metric import FailureKind
from dse.core.trial import State
from dse.protocols import Executor, Task, Work
from dse.testing.executor_contract import LONG_S, collected, is_alive
from dse.testing.work import perform, task

CRASHES = {
    "os._exit": (task(1, "exit", 3), {"crashed"}),
    "os._exit without an error": (task(1, "exit", 0), {"crashed"}),
    "SIGKILL": (task(1, "signal", int(signal.SIGKILL)), {"lost", "crashed"}),
    "SIGSEGV": (task(1, "signal", int(signal.SIGSEGV)), {"crashed"}),
    "SIGTERM": (task(1, "signal", int(signal.SIGTERM)), {"lost", "crashed"}),
}
"""Tasks that end their worker in different ways, with the kinds of failure allowed for each.

A signal that may come from outside (SIGKILL, SIGTERM) is no evidence against the task: an executor
that distinguishes signals reports ``lost``, so that the study tries the task again.
"""


class IsolationContract:
    """Contract tests of executors: a crashing or hanging task fails alone, with a reason."""

    @pytest.fixture
    def make(self) -> Callable[[Work], Executor]:
        """Return the factory of an executor of two workers without a time limit on tasks."""
        raise NotImplementedError("the contract needs the fixture 'make'")

    @pytest.fixture
    def hasty(self) -> Callable[[Work], Executor]:
        """Return the factory of a two-worker executor with a task timeout of two seconds."""
        raise NotImplementedError("the contract needs the fixture 'hasty'")

    @pytest.fixture
    def executor(self, make: Callable[[Work], Executor]) -> Iterator[Executor]:
        """Yield the executor under test."""
        made = make(perform)
        yield made
        made.close()

    @pytest.mark.parametrize(("crash", "kinds"), CRASHES.values(), ids=CRASHES.keys())
    def test_a_task_whose_worker_crashes_is_collected_as_failed(
        self, executor: Executor, crash: Task, kinds: set[FailureKind]
    ) -> None:
        executor.submit(crash)
        outcome = collected(executor, 1)[1]
        assert outcome.state is State.FAILED
        assert outcome.failure is not None
        assert outcome.failure.kind in kinds
        assert outcome.failure.reason

    def test_a_task_whose_worker_hangs_is_collected_as_failed(
        self, hasty: Callable[[Work], Executor]
    ) -> None:
        with closing(hasty(perform)) as executor:
            executor.submit(task(0, "sleep", 600.0))
            outcome = collected(executor, 1)[0]
        assert outcome.state is State.FAILED
        assert outcome.failure is not None
        assert outcome.failure.kind == "timeout"
        assert outcome.cost_s > 0.0

    def test_a_crash_leaves_all_other_tasks_alone(self, executor: Executor) -> None:
        for number in range(0, 16, 2):
            executor.submit(task(number, "square", number))
            executor.submit(task(number + 1, "exit", 1))
        outcomes = collected(executor, 16)
        assert [n for n in sorted(outcomes) if outcomes[n].state is State.DONE] == [
            *range(0, 16, 2)
        ]
        assert len(outcomes) == 16

    def test_a_task_in_flight_does_not_notice_that_another_hangs(self, executor: Executor) -> None:
        executor.submit(task(0, "sleep", 600.0))
        executor.submit(task(1, "sleep", 0.5))
        first = executor.collect(LONG_S)
        assert first.keys() == {1}
        assert first[1].state is State.DONE

    def test_a_task_that_crashed_is_not_tried_again(
        self, executor: Executor, tmp_path: Path
    ) -> None:
        executor.submit(task(0, "mark and exit", str(tmp_path / "marks")))
        assert collected(executor, 1).keys() == {0}
        executor.submit(task(1, "square", 3))
        assert collected(executor, 1).keys() == {1}
        assert (tmp_path / "marks").read_text() == "tried\n"

    def test_what_cannot_be_sent_back_is_a_failure(self, executor: Executor) -> None:
        executor.submit(task(0, "unsendable"))
        failure = collected(executor, 1)[0].failure
        assert failure is not None
        assert failure.kind == "raised"

    def test_work_that_calls_exit_is_a_failure(self, executor: Executor) -> None:
        executor.submit(task(0, "quit", "enough"))
        failure = collected(executor, 1)[0].failure
        assert failure is not None
        assert failure.kind == "raised"
        assert "enough" in failure.reason

    def test_work_runs_in_another_process(self, executor: Executor) -> None:
        executor.submit(task(0, "square", 1))
        assert collected(executor, 1)[0].metrics["pid"] != os.getpid()

    def test_closing_ends_workers_in_the_midst_of_their_work(
        self, executor: Executor, tmp_path: Path
    ) -> None:
        path = tmp_path / "pids"
        executor.submit(task(0, "child", str(path)))
        pids = written(path)
        executor.close()
        assert [pid for pid in pids if lives_on(pid)] == []


def written(path: Path) -> list[int]:
    """Wait for the file in which a worker writes process ids, and return these ids."""
    until = time.monotonic() + LONG_S
    while not path.exists():
        assert time.monotonic() < until, f"{path} was not written"
        time.sleep(0.02)
    return [int(word) for word in path.read_text().split()]


def lives_on(pid: int) -> bool:
    """Return whether the process still exists after 5 s, because a kill takes effect with delay."""
    until = time.monotonic() + 5.0
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return is_alive(pid)
