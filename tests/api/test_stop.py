"""A run ends cleanly when a callback or another thread stops it, and continues at the next call."""

import threading

import pytest

from dse import Metric, Study, evaluator
from dse.core.trial import State
from dse.storage.memory import MemoryStorage


@evaluator(Metric("time", "us", goal="minimize"))
def kernel(tile: int):
    return {"time": float(tile)}


def study(name="s", evaluators=(kernel,), **more):
    space = {"tile": {"integer": [0, 100]}}
    more = {"optimizer": "random", **more}
    return Study(name, space, list(evaluators), storage=MemoryStorage(), **more)


def test_a_callback_stops_a_run_and_the_next_one_continues():
    made = study()
    reason = made.run(trials=20, on_finished=lambda trial: trial.number == 4 and made.stop())
    assert (reason, made.ended) == ("stopped by the program", "stopped by the program")
    assert [trial.state for trial in made.trials] == [State.DONE] * 5
    assert made.run(trials=20) != reason
    twin = study()
    twin.run(trials=20)
    assert [t.design for t in made.trials] == [t.design for t in twin.trials]
    assert made.record.verify().whole


def test_another_thread_stops_a_run_after_the_evaluations_that_are_running():
    begun, ended = threading.Event(), threading.Event()

    @evaluator(Metric("time", "us", goal="minimize"))
    def slow(tile: int):
        begun.set()
        ended.wait(60)
        return {"time": float(tile)}

    made = study(evaluators=[slow])
    runner = threading.Thread(target=made.run, kwargs={"trials": 20}, daemon=True)
    runner.start()
    assert begun.wait(60)
    assert made.stop()
    ended.set()
    runner.join(60)
    assert [trial.state for trial in made.trials] == [State.DONE]
    assert made.ended == "stopped by the program"


def test_without_a_run_it_has_no_effect():
    made = study()
    assert not made.stop()
    made.run(trials=3)
    assert len(made.trials) == 3


@pytest.mark.parametrize("at", [0, 1, 2])
def test_it_may_come_while_baselines_are_measured_or_auto_chooses(at):
    made = study(
        optimizer="auto",
        minimize=["ratio(kernel.time, base)"],
        baselines={"base": {"tile": 50}},
    )
    made.run(measurements=6, on_finished=lambda trial: trial.number == at and made.stop())
    assert len(made.trials) == at + 1
    made.run(measurements=6)
    assert len(made.trials) == 6
