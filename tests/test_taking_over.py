"""Several drivers, one study: what one of them loses is taken over by others."""

import time
from dataclasses import replace
from threading import Thread

import pytest

from dse.core.metric import Failure
from dse.core.trial import Ask, Driver, Outcome, State
from dse.evaluation.pipeline import MeasurementCache
from dse.executors.serial import Serial
from dse.optimizers.random_search import RandomSearch
from dse.storage.memory import MemoryStorage
from dse.study.claimed_trials import Clock, Lease
from dse.study.history import TrialHistory
from dse.study.loop import Loop
from dse.study.proposers import NoOptimizer
from dse.study.replay import Replay
from dse.study.stopping_bounds import Bounds
from dse.study.study_engine import StudyEngine
from tests.small_studies import MEASURED, MODELLED, study_in

LOST = Failure(kind="lost", reason="the driver that ran it was lost")


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def held_elsewhere(study: StudyEngine, count: int = 1, host: str = "elsewhere") -> int:
    """A driver of another machine that holds the first trials and gives no sign of life."""
    storage = study.storage
    driver = storage.enter("s", Driver(host=host, pid=1))
    designs = study.problem.space.sample(count, study.problem.rng(0)).designs()
    storage.add("s", designs, Ask(after=0, worker=driver))
    return driver


def loop(study: StudyEngine, lease: Lease, trials: int, optimizer: type = RandomSearch) -> Loop:
    plan = study.plan
    return Loop(
        space=plan.problem.space,
        history=TrialHistory(study.storage, "s"),
        lease=lease,
        optimizer=optimizer(plan.problem),
        by="random",
        executor=Serial(plan.pipeline),
        readings=MeasurementCache(plan.pipeline),
        bounds=Bounds(trials=trials),
    )


def test_threads_share_one_budget_and_the_record_proves_every_ask(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    others = [Thread(target=StudyEngine.load("s", storage).run) for _ in range(3)]
    for one in others:
        one.start()
    for one in others:
        one.join()
    assert [trial.state for trial in study.trials] == [State.DONE] * 12
    assert len({trial.design for trial in study.trials}) == 12
    assert Replay(study).proof().trials == 12


def test_when_all_is_asked_a_driver_waits_for_others_and_takes_over_what_they_lose(
    tmp_path, storage
):
    study = study_in(tmp_path, MODELLED, storage)
    lost = held_elsewhere(study, count=3)
    with Lease(storage, "s", lease_s=0.3) as lease:
        reason = loop(study, lease, trials=3).run()
    assert reason == "3 trials are done"
    assert [(t.state, t.worker, t.attempts) for t in study.trials] == [
        (State.DONE, lease.id, 1)
    ] * 3
    assert [(a.number, a.failure.kind) for a in storage.attempts("s")] == [
        (n, "lost") for n in range(3)
    ]
    assert lease.id != lost


def test_what_another_driver_finishes_meanwhile_is_learnt_and_not_run_again(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    held_elsewhere(study)
    told = []
    with Lease(storage, "s", lease_s=60) as lease:
        waiting = loop(study, lease, trials=1)
        waiting.on_finished = told.append
        thread = Thread(target=waiting.run)
        thread.start()
        storage.finish("s", {0: Outcome(state=State.DONE, metrics={"chip.time": 1.0})})
        thread.join(300)
        assert not thread.is_alive()
    assert [(trial.number, dict(trial.metrics)) for trial in told] == [(0, {"chip.time": 1.0})]


def test_a_design_that_has_taken_four_drivers_with_it_is_given_up(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    for attempt in range(4):
        dead = storage.enter("s", Driver(host="elsewhere", pid=1))
        if attempt == 0:
            designs = study.problem.space.sample(1, study.problem.rng(0)).designs()
            storage.add("s", designs, Ask(after=0, worker=dead))
        else:
            storage.retry("s", {0: Outcome(state=State.FAILED, failure=LOST)})
            storage.claim("s", [0], dead)
            storage.begin("s", {0: 1.5})
    with Lease(storage, "s", lease_s=0.2) as lease:
        loop(study, lease, trials=1).run()
    (trial,) = study.trials
    assert (trial.state, trial.failure.kind, trial.attempts) == (State.FAILED, "lost", 3)


def test_who_was_overtaken_asks_again_with_all_that_is_new(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)

    class Overtaken(RandomSearch):
        def ask(self, count, pending=()):
            if not storage.trials("s"):
                held_elsewhere(study)
                storage.finish("s", {0: Outcome(state=State.DONE, metrics={"chip.time": 1.0})})
            return super().ask(count, pending)

    with Lease(storage, "s") as lease:
        loop(study, lease, 2, Overtaken).run()
    assert [(trial.told, trial.worker) for trial in study.trials] == [(0, 1), (1, 0)]
    proof = Replay(study).proof()
    assert (proof.mismatch, proof.trials, proof.unknown) == (None, 1, 1)


class Ticks(Clock):
    """Time that passes when it is told to."""

    seconds = 0.0

    def now_s(self):
        return self.seconds

    def tick(self, _):
        self.seconds += 10.0


def test_a_run_whose_time_is_up_begins_no_trial_that_waits(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    designs = study.problem.space.sample(4, study.problem.rng(0)).designs()
    storage.add("s", designs, Ask(after=0))
    clock = Ticks()
    with Lease(storage, "s") as lease:
        bounded = replace(loop(study, lease, trials=9), bounds=Bounds(time_s=15.0), clock=clock)
        bounded.on_finished = clock.tick
        assert bounded.run() == "the time is used up"
    assert [trial.state for trial in study.trials] == [State.DONE] * 2 + [State.PENDING] * 2


def test_a_run_that_begins_when_the_time_is_up_ends_what_was_asked(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    designs = study.problem.space.sample(3, study.problem.rng(0)).designs()
    storage.add("s", designs, Ask(after=0))
    with Lease(storage, "s") as lease:
        late = replace(loop(study, lease, trials=9), bounds=Bounds(time_s=0.0))
        assert late.run() == "the time is used up"
    assert [trial.state for trial in study.trials] == [State.DONE] * 3


def test_a_loop_that_costs_nothing_waits_for_nobody(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    held_elsewhere(study)
    with Lease(storage, "s", lease_s=60) as lease:
        free = replace(
            loop(study, lease, trials=9, optimizer=lambda _: NoOptimizer()), lingers=False
        )
        assert free.run() == "no design is left to ask"
    assert study.trials[0].state is State.RUNNING


def test_what_a_lost_driver_had_not_begun_counts_as_no_attempt(tmp_path, storage):
    study = study_in(tmp_path, MEASURED, storage)
    held_elsewhere(study, count=2)
    storage.begin("s", {1: 5.5})
    with Lease(storage, "s", lease_s=0.2) as lease:
        loop(study, lease, trials=2).run()
    assert [(trial.state, trial.attempts) for trial in study.trials] == [
        (State.DONE, 0),
        (State.DONE, 1),
    ]
    assert [(one.number, one.begun_at) for one in storage.attempts("s")] == [(1, 5.5)]


class Died(BaseException):
    """Ends a driver in the midst of its work, as SIGKILL does."""


@pytest.mark.parametrize("measured", [False, True])
def test_a_design_that_kills_its_driver_takes_no_others_of_its_batch_with_it(
    tmp_path, storage, measured
):
    study = study_in(tmp_path, MEASURED if measured else MODELLED, storage)
    first = study.problem.space.sample(8, study.problem.rng(0)).designs()
    storage.add("s", first)
    batches = []

    def work(tasks):
        batches.append([task.number for task in tasks])
        if 5 in batches[-1]:
            raise Died
        metrics = dict.fromkeys(study.problem.metrics, 1.0)
        return [Outcome(state=State.DONE, metrics=metrics) for _ in tasks]

    for _ in range(4):
        lease = Lease(storage, "s", lease_s=0.2).__enter__()
        with pytest.raises(Died):
            replace(loop(study, lease, trials=8), executor=Serial(work, batch=8)).run()
        lease._ended.set()
        lease._thread.join()
    with Lease(storage, "s", lease_s=0.2) as lease:
        replace(loop(study, lease, trials=8), executor=Serial(work, batch=8)).run()
    ends = [(trial.state, trial.attempts) for trial in study.trials]
    assert ends == [(State.FAILED if n == 5 else State.DONE, 3) for n in range(8)]
    assert batches == [[*range(8)]] * 3 + [[0], [1], [2], [3], [4], [5], [6], [7]]
    assert study.trials[5].failure.kind == "lost"


def test_trials_tell_when_they_were_asked_begun_and_finished(tmp_path, storage):
    before = time.time()
    study = study_in(tmp_path, MEASURED, storage)
    study.run()
    for trial in study.trials:
        times = [before, trial.asked_at, trial.begun_at, trial.finished_at, time.time()]
        assert times == sorted(times)


def test_a_driver_says_where_and_with_what_it_ran(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    study.run()
    (driver,) = storage.drivers("s")
    assert {"python", "numpy", "dse-engine", "machine", "host", "cpu", "evaluators"} <= set(
        driver.provenance
    )
