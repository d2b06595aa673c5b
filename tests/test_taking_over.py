"""Several drivers, one study: what is lost is taken over, what failed is tried again."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from dse.core.metric import Failure
from dse.core.trial import Ask, Driver, Outcome, State
from dse.errors import SpecErrors
from dse.evaluation.pipeline import MeasurementCache
from dse.executors.serial import Serial
from dse.optimizers.random_search import RandomSearch
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.claimed_trials import Clock, Lease
from dse.study.history import TrialHistory
from dse.study.loop import Loop
from dse.study.proposers import NoOptimizer
from dse.study.replay import Replay
from dse.study.stopping_bounds import Bounds
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows:  {ordinal: 'range(1 .. 40)'}
  cols:  {ordinal: 'range(1 .. 40)'}
"""
MODELLED = """
study: s
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / (rows * cols)}, area: {formula: rows * cols + rows}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
optimizer: random
executor: {use: serial, batch: 1}
budget: {trials: 12}
"""
MEASURED = """
study: s
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], metrics: {time: s}, timeout: LIMIT}
objectives: [{minimize: board.time}]
optimizer: random
executor: {use: EXECUTOR}
budget: {measurements: 2}
RETRIES
"""
LOST = Failure(kind="lost", reason="the driver that ran it was lost")

LIMITS = {"hang": "4 s"}
"""For what hangs; all else has a minute, however busy the machine is."""

# Each deed is done by the first two runs of the first design. Two runs that begin at once read and
# write under a lock: else both may find no run before them, and both do the deed.
BOARD = """
import fcntl, json, os, signal, sys, time
design = json.load(sys.stdin)
with open("runs", "a+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    runs = file.read().split()
    file.write(json.dumps(design["rows"]) + "\\n")
first = not runs or (runs[0] == str(design["rows"]) and runs.count(runs[0]) < 2)
deed = "DEED" if first else "fine"
if deed == "crash": os.kill(os.getppid(), signal.SIGKILL)
if deed == "hang": time.sleep(60)
if deed == "raise": sys.exit("on fire")
if deed == "impossible": print(json.dumps({"infeasible": "too hot"})); sys.exit()
print(json.dumps({"time": design["rows"]}))
"""


def study_in(
    folder: Path, text: str, storage: MemoryStorage, deed: str = "fine", **words: str
) -> StudyEngine:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.py").write_text(BOARD.replace("DEED", deed))
    for word, meant in {
        "PYTHON": sys.executable,
        "EXECUTOR": "serial",
        "RETRIES": "",
        "LIMIT": LIMITS.get(deed, "60 s"),
        **words,
    }.items():
        text = text.replace(word, meant)
    (folder / "study.yaml").write_text(text)
    return StudyEngine.open(folder / "study.yaml", storage=storage)


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


KINDS = [("crash", "lost"), ("hang", "timeout"), ("raise", "raised")]


@pytest.mark.slow
@pytest.mark.parametrize(("deed", "kind"), KINDS)
def test_what_failed_is_tried_again_as_often_as_its_kind_allows(tmp_path, storage, deed, kind):
    retries = f"retries: {{{kind}: 2}}"
    study = study_in(tmp_path, MEASURED, storage, deed, EXECUTOR="processes", RETRIES=retries)
    study.run()
    assert [trial.state for trial in study.trials] == [State.DONE] * 2
    assert sorted(trial.attempts for trial in study.trials) == [0, 2]
    assert [attempt.failure.kind for attempt in storage.attempts("s")] == [kind] * 2
    assert Replay(study).proof().trials == 2


@pytest.mark.slow
@pytest.mark.parametrize(("deed", "kind"), KINDS)
def test_a_trial_that_fails_once_more_than_allowed_has_failed(tmp_path, storage, deed, kind):
    retries = f"retries: {{{kind}: 1}}"
    study = study_in(tmp_path, MEASURED, storage, deed, EXECUTOR="processes", RETRIES=retries)
    study.run()
    assert sorted((t.state.value, t.attempts) for t in study.trials) == [("done", 0), ("failed", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_a_program_that_is_killed_from_outside_is_tried_again(tmp_path, storage, signal):
    deed = f'kill"; os.kill(os.getpid(), signal.{signal}) if first else None; "'
    study = study_in(tmp_path, MEASURED, storage, deed)
    study.run()
    assert [trial.state for trial in study.trials] == [State.DONE] * 2
    failures = [attempt.failure for attempt in storage.attempts("s")]
    assert [failure.kind for failure in failures] == ["lost"] * 2
    assert all(failure.reason.startswith(f"killed by {signal}") for failure in failures)


DEADLY = """
import json, os, signal, sys
design = json.load(sys.stdin)
with open("runs", "a") as file:
    file.write(f"{design['rows']} {design['cols']}\\n")
if design["rows"] % 2: os.kill(os.getppid(), signal.SIGKILL)
print(json.dumps({"time": design["rows"]}))
"""


@pytest.mark.slow
def test_a_design_that_kills_its_worker_each_time_is_given_up_alone(tmp_path, storage):
    text = MEASURED.replace("use: EXECUTOR", "use: processes, workers: 3")
    text = text.replace("measurements: 2", "measurements: 6")
    study = study_in(tmp_path, text, storage, RETRIES="retries: {lost: 2}")
    (tmp_path / "board.py").write_text(DEADLY)
    study.run()
    ends = {t.number: (t.state, t.attempts, t.failure and t.failure.kind) for t in study.trials}
    deadly = {trial.number for trial in study.trials if trial.design["rows"] % 2}
    assert 0 < len(deadly) < 6
    assert ends == {
        number: (State.FAILED, 2, "lost") if number in deadly else (State.DONE, 0, None)
        for number in range(6)
    }
    runs = (tmp_path / "runs").read_text().splitlines()
    assert len(runs) == len(set(runs)) + 2 * len(deadly)


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


def test_a_design_that_cannot_exist_is_never_tried_again(tmp_path, storage):
    retries = "retries: {raised: 5, crashed: 5, invalid: 5}"
    study_in(tmp_path, MEASURED, storage, "impossible", RETRIES=retries).run()
    assert storage.attempts("s") == []


def test_by_default_a_crash_is_final(tmp_path, storage):
    study = study_in(tmp_path, MEASURED, storage, "raise")
    study.run()
    assert storage.attempts("s") == []
    assert {trial.state for trial in study.trials} == {State.DONE, State.FAILED}


@pytest.mark.parametrize(
    ("retries", "said"),
    [
        (
            "{crash: 1}",
            r"study.yaml:10: there is no key 'crash' here\n  hint: did you mean 'crashed'",
        ),
        ("{infeasible: 1}", r"study.yaml:10: a design that cannot exist is never tried again"),
        ("{lost: -1}", r"study.yaml:10: lost is at least 0, not -1"),
        ("{lost: often}", r"study.yaml:10: lost: expected a whole number, found 'often'"),
    ],
)
def test_retries_that_cannot_be_are_refused_with_their_line(tmp_path, storage, retries, said):
    with pytest.raises(SpecErrors, match=said):
        study_in(tmp_path, MEASURED, storage, RETRIES=f"retries: {retries}")


def test_what_is_tried_again_may_be_changed_while_a_study_lives(tmp_path, storage):
    study_in(tmp_path, MEASURED, storage).run()
    changed = study_in(tmp_path, MEASURED, storage, RETRIES="retries: {timeout: 4}")
    assert changed.plan.retries == {"lost": 3, "memory": 1, "timeout": 4}
    assert plan_of(changed.plan.path).identity == changed.plan.identity


def test_a_driver_says_where_and_with_what_it_ran(tmp_path, storage):
    study = study_in(tmp_path, MODELLED, storage)
    study.run()
    (driver,) = storage.drivers("s")
    assert {"python", "numpy", "dse-engine", "machine", "host", "cpu", "evaluators"} <= set(
        driver.provenance
    )
