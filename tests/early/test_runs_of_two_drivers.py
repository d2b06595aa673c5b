"""Two drivers run one trial: its end is judged by the run of the driver whose outcome is stored."""

from __future__ import annotations

import pytest

from dse import Metric, Study, evaluator
from dse.core.design import Design
from dse.core.trial import Driver, Outcome, Report, State
from dse.evaluation.early_stopping import runs
from dse.storage.memory import MemoryStorage
from dse.study.early_stop_watch import EarlyStopMonitor
from dse.study.history import TrialHistory
from dse.study.replay import Replay

BETTER, WORSE = 0, 1
GOOD, BAD = {"net.loss": 1.0}, {"net.loss": 9.0}
DONE = Outcome(state=State.DONE, metrics=BAD)
STOPPED = Outcome(state=State.STOPPED, metrics=BAD)


@evaluator(Metric("loss"), version="1")
def net(rate: int) -> dict[str, float]:
    return {"loss": rate}


class Drivers:
    """A study whose two drivers run the worse of two designs; the better one has reported."""

    def __init__(self, *, given_up: bool) -> None:
        self.storage = MemoryStorage()
        self.study = Study(
            "s",
            {"rate": [1, 9]},
            {"net": net},
            minimize="net.loss",
            early_stopping={"rule": "successive-halving", "eta": 3, "rungs": [1]},
            storage=self.storage,
        ).engine
        self.storage.add("s", [Design({"rate": 1}), Design({"rate": 9})])
        for _ in range(2):
            self.storage.enter("s", Driver())
        self.storage.claim("s", [BETTER, WORSE], 0)
        self.first = self.watch(0)
        if given_up:
            self.storage.retry("s", {WORSE: Outcome(state=State.FAILED)})
        else:
            self.storage.leave("s", 0)
        self.storage.claim("s", [WORSE], 1)
        self.second = self.watch(1)

    def watch(self, worker: int) -> EarlyStopMonitor:
        history = TrialHistory(self.storage, "s")
        history.read()
        problem, rule = self.study.problem, self.study.plan.early_stopping
        return EarlyStopMonitor(history=history, problem=problem, rule=rule, worker=worker)

    def mismatch(self, outcome: Outcome, worker: int) -> str:
        self.storage.finish("s", {BETTER: Outcome(state=State.DONE, metrics=GOOD)}, worker=0)
        self.storage.finish("s", {WORSE: outcome}, worker=worker)
        found = Replay(self.study).proof().mismatch
        return "" if found is None else found.reason


@pytest.mark.parametrize(
    ("outcome", "worker", "mismatch"),
    [
        (DONE, 0, ""),  # its report came too late to be kept
        (STOPPED, 0, "it was stopped, and had to go on"),
        (STOPPED, 1, ""),
        (DONE, 1, "it went on, and had to be stopped"),
    ],
)
def test_of_an_attempt_that_was_given_up_the_outcome_may_come_first(outcome, worker, mismatch):
    drivers = Drivers(given_up=True)
    assert not drivers.first(BETTER, 1, GOOD)
    assert not drivers.first(WORSE, 1, BAD)
    assert drivers.second(WORSE, 1, BAD)
    assert drivers.mismatch(outcome, worker) == mismatch


@pytest.mark.parametrize(
    ("outcome", "worker", "mismatch"),
    [
        (STOPPED, 0, ""),
        (DONE, 0, "it went on, and had to be stopped"),
        (DONE, 1, ""),
        (STOPPED, 1, "it was stopped, and had to go on"),
    ],
)
def test_drivers_that_run_the_same_attempt_are_told_apart(outcome, worker, mismatch):
    drivers = Drivers(given_up=False)
    assert not drivers.first(BETTER, 1, GOOD)
    assert drivers.first(WORSE, 1, BAD)
    assert not drivers.second(WORSE, 1, {"net.loss": 0.5})
    assert drivers.mismatch(outcome, worker) == mismatch


def test_runs_that_report_by_turns_are_told_apart():
    steps = [(0, 1), (1, 1), (0, 2), (1, 2), (0, 1), (1, 3)]
    reports = [Report(number=3, step=step, metrics={}, worker=worker) for worker, step in steps]
    assert runs(reports) == [0, 1, 0, 1, 2, 1]


def test_a_run_that_is_not_the_last_that_was_begun_goes_on():
    drivers = Drivers(given_up=False)
    assert not drivers.first(BETTER, 1, GOOD)
    assert not drivers.first(WORSE, 0, BAD)
    assert not drivers.second(WORSE, 0, BAD)
    assert not drivers.first(WORSE, 1, BAD)
    assert drivers.second(WORSE, 1, BAD)
