"""Drivers in threads of one process share their evaluators, and each hears its own trials only."""

from threading import Event, Thread

import dse
from dse import Metric, Study, evaluator
from dse.core.design import Design
from dse.core.trial import Driver, State
from dse.evaluation.pipeline import MeasurementCache
from dse.executors.serial import Serial
from dse.storage.memory import MemoryStorage
from dse.study.early_stop_watch import EarlyStopMonitor
from dse.study.history import TrialHistory
from dse.study.replay import Replay

HANGS_S = 60.0
BETTER, WORSE = 1, 9
BEGUN, MAY_REPORT, REPORTED = Event(), Event(), Event()
"""The better trial reports while the driver of the worse one reads the reports."""


@evaluator(Metric("loss"), version="1")
def net(rate: int) -> dict[str, float]:
    if rate == BETTER:
        BEGUN.set()
        assert MAY_REPORT.wait(HANGS_S)
    dse.report(1, {"loss": rate})
    REPORTED.set()
    return {"loss": rate}


class Slow:
    """A storage that has read the reports, and answers after the other driver has reported."""

    def __init__(self, storage):
        self._storage = storage

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def reports(self, study, since=0):
        found = self._storage.reports(study, since)
        if not MAY_REPORT.is_set():
            MAY_REPORT.set()
            assert REPORTED.wait(HANGS_S)
        return found


def driver_of(plan, storage):
    """An executor with a watch of its own, and what the driver knows of the study."""
    history = TrialHistory(storage, "s")
    history.read()
    executor = Serial(plan.pipeline)
    executor.on_report = EarlyStopMonitor(
        history=history, problem=plan.problem, rule=plan.early_stopping
    )
    return executor


def test_a_trial_is_judged_by_the_reports_before_its_own_whatever_another_driver_hears():
    storage = MemoryStorage()
    study = Study(
        "s",
        {"rate": [BETTER, WORSE]},
        {"net": net},
        minimize="net.loss",
        early_stopping={"rule": "successive-halving", "eta": 3, "rungs": [1]},
        storage=storage,
    ).engine
    designs = [Design({"rate": rate}) for rate in (BETTER, WORSE)]
    better, worse = storage.add("s", designs)
    for number in (0, 1):
        storage.enter("s", Driver())
        storage.claim("s", [number], number)
    readings = MeasurementCache(study.plan.pipeline)
    first, second = driver_of(study.plan, storage), driver_of(study.plan, Slow(storage))
    first.submit(readings.task(better))
    second.submit(readings.task(worse))

    thread = Thread(target=lambda: storage.finish("s", first.collect()))
    thread.start()
    assert BEGUN.wait(HANGS_S)
    storage.finish("s", second.collect())
    thread.join()

    assert Replay(study).proof().mismatch is None
    assert [report.number for report in storage.reports("s")] == [worse.number, better.number]
    assert [trial.state for trial in storage.trials("s")] == [State.DONE, State.DONE]
