"""What the executor ``serial`` does beside the laws."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dse.core.trial import Outcome, State
from dse.errors import PluginError
from dse.executors.serial import Serial
from dse.protocols import Task
from dse.testing.work import perform, task


def sizes(tasks: Sequence[Task]) -> list[Outcome]:
    return [Outcome(state=State.DONE, metrics={"size": len(tasks)}) for _ in tasks]


def interrupted(tasks: Sequence[Task]) -> list[Outcome]:
    raise KeyboardInterrupt


def forgetful(tasks: Sequence[Task]) -> list[Outcome]:
    return perform(tasks)[1:]


def submitted(executor: Serial, count: int) -> Serial:
    for number in range(count):
        executor.submit(task(number, "square", number))
    return executor


def test_a_batch_is_one_call_of_the_work() -> None:
    outcomes = submitted(Serial(sizes, batch=8), 8).collect()
    assert [outcome.metrics["size"] for outcome in outcomes.values()] == [8] * 8


def test_nothing_is_done_before_it_is_asked_for() -> None:
    assert submitted(Serial(interrupted), 1).capacity == 1


def test_ctrl_c_passes_through_and_loses_no_task() -> None:
    executor = submitted(Serial(interrupted, batch=2), 2)
    with pytest.raises(KeyboardInterrupt):
        executor.collect()
    with pytest.raises(KeyboardInterrupt):
        executor.collect()


def test_work_that_gives_too_few_outcomes_has_failed() -> None:
    outcomes = submitted(Serial(forgetful, batch=2), 2).collect()
    assert [outcome.state for outcome in outcomes.values()] == [State.FAILED] * 2


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(PluginError, match="serial"):
        Serial(perform, batch=0)
