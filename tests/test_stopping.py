"""When a study stops: by what it costs, and when little more is to be gained."""

import time
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Column
from dse.core.design import Design
from dse.core.pareto import hypervolume
from dse.core.trial import Asked, State, Trial
from dse.evaluation.pipeline import MeasurementCache
from dse.executors.processes import Processes
from dse.executors.serial import Serial
from dse.optimizers.random_search import RandomSearch
from dse.schema.study.budget import Budget
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.claimed_trials import Lease
from dse.study.history import TrialHistory, moments
from dse.study.loop import Loop
from dse.study.stopping_bounds import Bounds
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows:  {ordinal: 'range(1 .. 40)'}
  cols:  {ordinal: 'range(1 .. 40)'}
"""
STUDY = """
study: s
space: space.yaml
evaluators:
  chip:
    use: expression
    metrics: {time: {formula: 1000 / (rows * cols)}, area: {formula: rows * cols + rows}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
reference: {chip.time: 1000, chip.area: 2000}
optimizer: OPTIMIZER
executor: {use: serial, batch: 1}
BUDGET
"""


class Forecast(RandomSearch):
    """Random designs with a gain that is known for every state: what ``gains`` has there."""

    expected_gain: float | None = None

    def __init__(self, problem, gains):
        super().__init__(problem)
        self._count, self._gains = 0, gains

    def ask(self, count, pending=()):
        self.expected_gain = self._gains[self._count]
        return super().ask(count, pending)

    def tell(self, finished):
        self._count += len(finished)
        super().tell(finished)


def path_in(folder: Path, budget: str = "", optimizer: str = "random") -> Path:
    (folder / "space.yaml").write_text(SPACE)
    text = STUDY.replace("OPTIMIZER", optimizer).replace("BUDGET", budget)
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"


def looped(folder, storage, gains, trials=None, gain=0.01) -> tuple[str, list[Trial]]:
    """Why a loop over made-up gains stopped, and the record that it left."""
    plan = plan_of(path_in(folder))
    if "s" not in storage.studies():
        storage.create("s", {})
    with Lease(storage, "s") as lease:
        reason = Loop(
            space=plan.problem.space,
            history=TrialHistory(storage, "s"),
            lease=lease,
            optimizer=Forecast(plan.problem, gains),
            executor=Serial(plan.pipeline),
            readings=MeasurementCache(plan.pipeline),
            bounds=Bounds(trials=trials, min_improvement=gain),
        ).run()
    return reason, [replace(trial, cost_s=0, worker=None) for trial in storage.trials("s")]


LOW, HIGH = 0.0004, 0.5
GAINS = [None, LOW, LOW, None, LOW, LOW, HIGH, LOW, LOW, LOW, HIGH, HIGH, HIGH]


def test_three_suggestions_in_a_row_that_promise_too_little_end_a_study(tmp_path):
    reason, trials = looped(tmp_path, MemoryStorage(), GAINS)
    assert reason == "the expected gain, 0.04 %, is below 1 % of the hypervolume"
    assert len(trials) == 9


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_study_that_was_stopped_in_between_ends_at_the_same_suggestion(tmp_path, cut):
    storage = MemoryStorage()
    looped(tmp_path, storage, GAINS, trials=cut)
    resumed = looped(tmp_path, storage, GAINS)
    assert resumed == looped(tmp_path, MemoryStorage(), GAINS)


def test_a_study_that_has_ended_says_so_again_and_asks_nothing(tmp_path):
    storage = MemoryStorage()
    ended = looped(tmp_path, storage, GAINS)
    assert looped(tmp_path, storage, [HIGH] * 30) == ended


def test_a_smaller_share_lets_an_ended_study_go_on(tmp_path):
    storage = MemoryStorage()
    looped(tmp_path, storage, GAINS)
    reason, trials = looped(tmp_path, storage, GAINS, trials=12, gain=1e-6)
    assert (reason, len(trials)) == ("12 trials are done", 12)


def test_a_study_ends_when_its_money_is_spent(tmp_path, monkeypatch):
    ticks = count()
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks) / 4)
    study = StudyEngine.open(path_in(tmp_path), storage=MemoryStorage())
    reason = study.run(budget=Budget(cost=2.0, price_per_s=1.0))
    assert reason == "2 $ are spent"
    assert [trial.cost_s for trial in study.trials] == [0.25] * 8


def test_money_that_is_spent_stays_spent(tmp_path):
    storage = MemoryStorage()
    study = StudyEngine.open(path_in(tmp_path), storage=storage)
    study.run(budget=Budget(cost=1.0, price_per_s=1000.0))
    before = len(study.trials)
    StudyEngine.load("s", storage).run(budget=Budget(cost=1.0, price_per_s=1000.0))
    assert len(study.trials) == before


@pytest.mark.slow
def test_a_surrogate_that_has_found_the_front_expects_little_more(tmp_path):
    text = "budget: {min_improvement: 0.5 %, trials: 60}"
    study = StudyEngine.open(path_in(tmp_path, text, "qlognehvi"), storage=MemoryStorage())
    reason = study.run()
    assert reason.endswith("is below 0.5 % of the hypervolume")
    assert 8 < len(study.trials) < 60
    every = next(iter(study.problem.space.enumerate()))
    whole = [Trial(number=n, design=d) for n, d in enumerate(every.designs())]
    assert study.front.hypervolume > 0.97 * best(study, whole)


def best(study: StudyEngine, whole: list[Trial]) -> float:
    """The hypervolume of all designs."""
    batch = study.problem.space.batch([trial.design for trial in whole])
    known = study.problem.known(batch).columns
    columns = {name: Column(values) for name, values in known.items()}
    losses = study.problem.losses(columns, len(whole))
    return hypervolume(losses, np.array([1000.0, 2000.0]))


@pytest.mark.slow
def test_a_resumed_surrogate_ends_where_an_undisturbed_one_does(tmp_path):
    text = "budget: {min_improvement: 0.5 %, trials: 60}"
    path = path_in(tmp_path, text, "qlognehvi")
    once, twice = (
        StudyEngine.open(path, name=n, storage=MemoryStorage()) for n in ("once", "twice")
    )
    once.run()
    cut = Budget(trials=len(once.trials) - 1)
    twice.run(budget=cut)
    assert twice.run() == once.run()
    assert [t.design for t in twice.trials] == [t.design for t in once.trials]


def test_what_was_asked_last_asked_again_when_a_study_is_gone_on_with(tmp_path):
    plan = plan_of(path_in(tmp_path))
    asked: list[tuple[int, int, int]] = []

    class Witness(Forecast):
        def ask(self, count, pending=()):
            asked.append((self._count, count, len(pending)))
            return super().ask(count, pending)

    def run(trials):
        with closing(Processes(plan.pipeline, workers=2)) as runner, Lease(storage, "s") as lease:
            Loop(
                space=plan.problem.space,
                history=TrialHistory(storage, "s"),
                lease=lease,
                optimizer=Witness(plan.problem, [HIGH] * 30),
                executor=runner,
                readings=MeasurementCache(plan.pipeline),
                bounds=Bounds(trials=trials, min_improvement=0.01),
            ).run()

    storage = MemoryStorage()
    storage.create("s", {})
    run(6)
    live = list(asked)
    asked.clear()
    run(6)
    assert asked == live[-2:]


def test_a_suggestion_is_recalled_with_what_was_not_finished_then():
    designs = [Design({"rows": rows}) for rows in range(1, 7)]
    trials = [Trial(number=n, design=d, state=State.DONE) for n, d in enumerate(designs)]
    order = [trials[n] for n in (1, 0, 3, 2, 5)]
    asks = [Asked(first=3, count=2, told=1), Asked(first=5, count=1, told=3)]
    found = [
        (m.ask.first, [t.number for t in m.news], m.pending) for m in moments(asks, trials, order)
    ]
    assert found == [
        (3, [1], (designs[0], designs[2])),
        (5, [0, 3], (designs[2], designs[4])),
    ]
