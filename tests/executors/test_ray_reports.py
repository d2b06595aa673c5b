"""What an evaluator on a Ray cluster reports is heard by the driver, and may end its trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import Pipeline
from dse.executors.ray.cluster import RayCluster
from dse.protocols import Task
from dse.testing.executor_contract import collected
from dse.testing.training import train
from dse_evaluators.generic.python import Python

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray_nodes")]

TASK = Task(number=7, design=Design({"rate": 9.0}))
Heard = list[tuple[int, int, Mapping[str, float]]]


@pytest.fixture
def start() -> Iterator[Callable[..., RayCluster]]:
    evaluator = Python(function=train, metrics={"loss": ""}, reads=["rate"])
    work = Pipeline([Bound(name="net", evaluator=evaluator, names={"rate": "rate"})])
    with ExitStack() as stack:

        def begin(watcher: Callable[..., bool], **options: float) -> RayCluster:
            executor = RayCluster(work, workers=1, **options)
            executor.on_report = watcher
            stack.callback(executor.close)
            return executor

        yield begin


def outcome(executor: RayCluster) -> Outcome:
    executor.submit(TASK)
    return collected(executor, 1)[TASK.number]


def test_reports_are_heard_in_order_under_the_studys_names(
    start: Callable[..., RayCluster],
) -> None:
    heard: Heard = []
    ended = outcome(start(lambda *told: heard.append(told)))
    assert heard == [(7, step, {"net.loss": 9.0 / step}) for step in range(1, 10)]
    assert (ended.state, ended.metrics) == (State.DONE, {"net.loss": 1.0})


def test_a_worker_that_stopped_a_trial_takes_the_next(start: Callable[..., RayCluster]) -> None:
    executor = start(lambda _number, step, _metrics: step == 3)
    ended = outcome(executor)
    assert (ended.state, ended.metrics) == (State.STOPPED, {"net.loss": 3.0})
    executor.on_report = lambda *_: False
    assert outcome(executor).state is State.DONE


def test_time_in_which_the_driver_is_busy_is_no_time_of_the_task(
    start: Callable[..., RayCluster],
) -> None:
    executor = start(lambda *_: bool(time.sleep(0.6)), timeout_s=5.0)
    assert outcome(executor).state is State.DONE
