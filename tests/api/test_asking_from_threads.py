"""Ask and tell from several threads: who waits for whom, and what a close does to them."""

from __future__ import annotations

import time
from threading import Event, Thread
from time import sleep

import pytest

from dse import Study, evaluator
from dse.core.trial import State
from dse.errors import StudyError
from tests.api.asked_study import GOALS, SPACE, asked, cost


def test_several_threads_ask_one_study_and_each_design_is_told_once():
    study = asked(optimizer="sobol")
    told = []

    def work():
        for _ in range(4):
            told.extend(study.tell(trial, cost(**trial.design)).number for trial in study.ask(1))

    threads = [Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(told) == list(range(12))
    study.close()


def test_a_thread_that_has_nothing_to_report_waits_for_those_that_have():
    study = asked(optimizer="sobol", budget={"measurements": 3})
    (trial,) = study.ask(1)
    given: list[int] = []

    def work() -> None:
        while trials := study.ask(2):
            given.extend(study.tell(one, cost(**one.design)).number for one in trials)

    worker = Thread(target=work, daemon=True)
    worker.start()
    sleep(0.2)  # it has two, then waits for the third: it may end only after that
    study.tell(trial, failed="the board caught fire")
    worker.join(300)
    assert not worker.is_alive()
    assert sorted(given) == [1, 2]
    assert study.ended == "3 measurements are done"


def test_who_asks_may_wait_for_threads_that_report():
    study = asked(optimizer="auto", budget={"measurements": 8})
    threads: list[Thread] = []

    def report(trial) -> None:
        sleep(0.01)
        study.tell(trial, cost(**trial.design))

    while trials := study.ask(4, wait=True):
        threads += [Thread(target=report, args=(trial,), daemon=True) for trial in trials]
        for thread in threads[-len(trials) :]:
            thread.start()
    assert sum(trial.measured for trial in study.trials) == 8


def await_question(study) -> None:
    """Wait until a thread asks."""
    until = time.monotonic() + 300
    while not study._asking._turn.locked():
        assert time.monotonic() < until
        sleep(0.01)


def test_a_thread_that_asks_in_vain_while_another_waits_is_told_too():
    study = asked(optimizer="sobol", budget={"measurements": 1})
    (trial,) = study.ask(1)
    waiter = Thread(target=lambda: study.ask(1), daemon=True)
    waiter.start()
    await_question(study)
    with pytest.raises(StudyError, match=r"reported: trial 0\b"):
        study.ask(1)
    study.tell(trial, cost(**trial.design))
    waiter.join(300)
    assert not waiter.is_alive()


def test_who_asks_waits_for_what_other_drivers_hold():
    one = asked(optimizer="sobol", budget={"measurements": 2})
    other = asked(one.engine.storage, optimizer="sobol", budget={"measurements": 2})
    held = one.ask(2)
    with pytest.raises(StudyError, match="trials 0, 1, which another Study object asked"):
        other.ask(2)
    got: list[object] = []
    waiter = Thread(target=lambda: got.append(other.ask(2)), daemon=True)
    waiter.start()
    await_question(other)
    assert waiter.is_alive()
    for trial in held:
        one.tell(trial, cost(**trial.design))
    waiter.join(300)
    assert got == [[]] == [one.ask()]
    assert other.ended == one.ended == "2 measurements are done"
    assert sum(trial.measured for trial in other.trials) == 2


def test_a_thread_that_waits_while_another_closes_is_told_so():
    study = asked(optimizer="sobol", budget={"measurements": 1})
    study.ask(1)
    errors: list[str] = []

    def wait() -> None:
        try:
            study.ask(1)
        except StudyError as error:
            errors.append(error.problem)

    waiter = Thread(target=wait, daemon=True)
    waiter.start()
    await_question(study)
    study.close()
    waiter.join(300)
    assert errors == ["the study 'own' was closed while a design was asked"]


def test_telling_while_another_closes_is_told_in_a_line():
    @evaluator("slow", reads=["tile"])
    def slow(tile: int) -> float:
        began.set()
        closed.wait(300)
        return float(tile)

    began, closed = Event(), Event()
    study = Study("own", SPACE, slow, metrics=GOALS, storage="memory://")
    (trial,) = study.ask()
    errors: list[BaseException] = []

    def tell() -> None:
        try:
            study.tell(trial, cost(**trial.design))
        except StudyError as error:
            errors.append(error)

    teller = Thread(target=tell)
    teller.start()
    assert began.wait(300)
    closer = Thread(target=study.close)
    closer.start()
    sleep(0.2)  # it may wait until the telling ends
    closed.set()
    closer.join(300)
    teller.join(300)
    states = [one.state for one in study.trials]
    assert not teller.is_alive()
    assert bool(errors) == (State.DONE not in states)
