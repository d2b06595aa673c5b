"""Ladders of fidelities: what runs at which rung, what is reported, and what is bought."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.metric import Metric, Metrics
from dse.core.objective import Objective
from dse.core.parameter import Integer
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.errors import PluginError, SpecErrors
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import MeasurementCache, Pipeline
from dse.executors.serial import Serial
from dse.optimizers.multi_fidelity import Ladder
from dse.optimizers.sobol import Sobol
from dse.protocols import Task, traits_of
from dse.report.html.fidelity import rungs
from dse.schema.study.plan import plan_of
from dse.schema.study.run_sections import stages_of
from dse.storage.memory import MemoryStorage
from dse.study.claimed_trials import Lease
from dse.study.history import TrialHistory
from dse.study.loop import Loop
from dse.study.stopping_bounds import Bounds
from dse.testing.optimizer_contract import FiniteOptimizerContract

LADDER = {"full.loss": ("proxy.loss", "full.loss")}
PRICES = {State.SCREENED: 1.0, State.DONE: 20.0}


class Told:
    """An evaluator that tells what a formula of numpy says, and how often it was called."""

    optional, units, version = frozenset(), {}, "1"

    def __init__(self, formula, kind="measured"):
        self.reads = frozenset({"a", "b"})
        self.provides = {"loss": Metric(name="loss")}
        self.kind, self.formula, self.calls = kind, formula, 0

    def evaluate(self, batch):
        self.calls += 1
        a, b = batch["a"].astype(float), batch["b"].astype(float)
        return Metrics(columns={"loss": self.formula(a, b)})


def truth(a, b):
    return 100 / (1 + a) + (b - 7) ** 2


def good(a, b):
    return 0.5 * truth(a, b) + 3 + np.sin(9 * a + b)


def bad(a, b):
    return np.sin(99 * a + 31 * b)


def case(proxy=good, ladders=LADDER) -> tuple[Problem, Pipeline]:
    both = {"a": "a", "b": "b"}
    evaluators = {
        "proxy": Told(proxy),
        "full": Told(truth),
        "area": Told(lambda a, b: a + 1.0, "modelled"),
    }
    bound = [Bound(name=n, evaluator=e, names=both) for n, e in evaluators.items()]
    pipeline = Pipeline(bound)
    problem = Problem(
        space=DesignSpace(
            parameters=(Integer(name="a", low=0, high=30), Integer(name="b", low=1, high=20))
        ),
        sources=pipeline.sources,
        objectives=tuple(
            Objective(expression=parse(name), goal="minimize")
            for name in ("full.loss", "area.loss")
        ),
        fixed_reference=(120.0, 40.0),
        model=pipeline.known,
        ladders=ladders,
    )
    return problem, pipeline


def looped(problem, pipeline, storage, measurements, optimizer=Ladder):
    if "s" not in storage.studies():
        storage.create("s", {})
    with Lease(storage, "s") as lease:
        Loop(
            space=problem.space,
            history=TrialHistory(storage, "s"),
            lease=lease,
            optimizer=optimizer(problem),
            executor=Serial(pipeline),
            readings=MeasurementCache(pipeline),
            bounds=Bounds(measurements=measurements),
            stages=stages_of(pipeline.bound, pipeline.sources, problem.ladders),
        ).run()
    return [
        replace(trial, cost_s=PRICES[trial.state], worker=None) for trial in storage.trials("s")
    ]


def calls(pipeline):
    return {bound.name: bound.evaluator.calls for bound in pipeline.bound}


def test_a_rung_is_bought_once_and_the_next_one_by_a_later_trial():
    problem, pipeline = case()
    trials = looped(problem, pipeline, MemoryStorage(), 2)
    assert [trial.state for trial in trials] == [State.SCREENED, State.DONE]
    assert trials[0].design == trials[1].design
    assert "full.loss" not in trials[0].metrics
    assert trials[1].metrics["proxy.loss"] == trials[0].metrics["proxy.loss"]
    assert (calls(pipeline)["proxy"], calls(pipeline)["full"]) == (1, 1)


def test_what_was_only_screened_is_never_part_of_the_answer():
    problem, pipeline = case()
    trials = looped(problem, pipeline, MemoryStorage(), 40)
    front = ParetoSet.of(problem, trials).trials
    assert {trial.state for trial in front} == {State.DONE}
    assert sum(trial.state is State.SCREENED for trial in trials) > len(front)


def test_another_optimizer_runs_every_rung_for_every_design():
    problem, pipeline = case()
    trials = looped(problem, pipeline, MemoryStorage(), 5, Sobol)
    assert {trial.state for trial in trials} == {State.DONE}
    assert calls(pipeline)["full"] == 5


@pytest.mark.parametrize("cut", [1, 2, 7, 16])
def test_a_ladder_that_was_cut_short_buys_the_same_rungs(cut, monkeypatch):
    monkeypatch.setattr(Ladder, "_prices", lambda self: (1.0, 20.0))  # seconds differ between runs
    problem, pipeline = case()
    once, twice = MemoryStorage(), MemoryStorage()
    looped(problem, pipeline, twice, cut)
    done = [(t.design, t.state) for t in looped(problem, pipeline, twice, 24)]
    assert done == [(t.design, t.state) for t in looped(problem, pipeline, once, 24)]


def test_stages_follow_the_ladder_and_what_reads_it():
    _, pipeline = case()
    reader = Told(truth, "modelled")
    late = Bound(name="late", evaluator=reader, names={"a": "a", "b": "full.loss"})
    other = Bound(name="other", evaluator=Told(truth), names={"a": "a", "b": "b"})
    whole = Pipeline([*pipeline.bound, late, other])
    stages = stages_of(whole.bound, whole.sources, LADDER)
    assert stages == {"area": 0, "proxy": 0, "full": 1, "late": 1, "other": 1}


def test_a_ladder_with_one_measured_rung_saves_nothing():
    _, pipeline = case()
    assert stages_of(pipeline.bound, pipeline.sources, {"full.loss": ("full.loss",)}) == {}


def test_the_only_measured_rung_of_a_ladder_waits_for_the_top_of_the_others():
    _, pipeline = case()
    both = {**LADDER, "area.loss": ("full.loss",)}
    stages = stages_of(pipeline.bound, pipeline.sources, both)
    assert stages == {"area": 0, "proxy": 0, "full": 1}


def test_a_task_of_the_lowest_rung_runs_nothing_above_it():
    problem, pipeline = case()
    design = problem.space.sample(1, problem.rng(0)).design(0)
    (outcome,) = pipeline([Task(number=0, design=design, only=frozenset({"area", "proxy"}))])
    assert outcome.state is State.SCREENED
    assert set(outcome.metrics) == {"area.loss", "proxy.loss"}
    assert calls(pipeline)["full"] == 0


def played(proxy, seed, seconds, make):
    """The share of the best hypervolume that was bought for so many seconds."""
    problem, pipeline = case(proxy)
    problem = replace(problem, seed=seed)
    optimizer, seen, trials, spent = make(problem), [], [], 0.0
    climbs = traits_of(optimizer).multi_fidelity
    while spent < seconds and (designs := optimizer.ask(1)):
        lower = climbs and designs[0] not in seen
        only = frozenset({"area", "proxy"}) if lower else None
        (outcome,) = pipeline([Task(number=0, design=designs[0], only=only)])
        price = PRICES[outcome.state] + (0 if climbs else PRICES[State.SCREENED])
        trial = Trial(number=len(trials), design=designs[0]).finished(
            replace(outcome, cost_s=price, measured=1)
        )
        optimizer.tell([trial])
        trials.append(trial)
        seen.append(designs[0])
        spent += price
    everything = next(iter(problem.space.enumerate()))
    best = pipeline([Task(number=0, design=d) for d in everything.designs()])
    rows = zip(everything.designs(), best, strict=True)
    whole = [replace(trials[0], design=d, **_fields(outcome)) for d, outcome in rows]
    return ParetoSet.of(problem, trials).hypervolume / ParetoSet.of(problem, whole).hypervolume


def _fields(outcome):
    return {"state": outcome.state, "metrics": outcome.metrics}


@pytest.mark.proof
def test_for_the_same_seconds_a_good_proxy_buys_more_than_the_top_rung_alone():
    seeds = range(3)
    climbed = [played(good, seed, 400, Ladder) for seed in seeds]
    whole = [played(good, seed, 400, Sobol) for seed in seeds]
    assert np.median(climbed) > np.median(whole)


@pytest.mark.slow
def test_a_proxy_that_tells_nothing_costs_little():
    seeds = range(3)
    climbed = [played(bad, seed, 400, Ladder) for seed in seeds]
    whole = [played(bad, seed, 400, Sobol) for seed in seeds]
    assert np.median(climbed) > 0.9 * np.median(whole)


@pytest.mark.parametrize(("proxy", "least", "most"), [(good, 0.9, 1.0), (bad, -0.4, 0.4)])
def test_the_agreement_of_a_rung_is_told(proxy, least, most):
    problem, pipeline = case(proxy)
    trials = looped(problem, pipeline, MemoryStorage(), 30, Sobol)
    (rung,) = rungs(problem, trials)
    assert rung.designs == 30
    assert least <= rung.tau <= most
    assert rung.error <= rung.raw
    assert f"Kendall tau {rung.tau:.2f} over 30 designs" in rung.words()


def test_a_measured_metric_without_a_ladder_cannot_be_screened():
    problem, _ = case(ladders={"full.loss": ("proxy.loss", "full.loss")})
    asked = (*problem.objectives, Objective(expression=parse("proxy.loss"), goal="minimize"))
    with pytest.raises(PluginError, match=r"proxy\.loss has no lower fidelity"):
        Ladder(replace(problem, objectives=asked))


class TestLadder(FiniteOptimizerContract):
    @pytest.fixture
    def make(self):
        return Ladder


SPACE = "space: s\nparameters:\n  a: {integer: [0, 30]}\n"
STUDY = """
study: s
space: space.yaml
evaluators:
  proxy: {use: command, run: ['true'], metrics: {loss: mJ, time: s}}
  full: {use: command, run: ['true'], metrics: {loss: J}}
  model: {use: expression, metrics: {loss: {formula: a * 1 J, unit: J}}}
objectives: [{minimize: full.loss}]
"""


def plan_in(folder: Path, fidelities: str):
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(f"{STUDY}fidelities: {fidelities}\n")
    return plan_of(folder / "study.yaml")


def test_a_study_file_states_its_ladders(tmp_path):
    plan = plan_in(tmp_path, "{full.loss: [model.loss, proxy.loss, full.loss]}")
    assert plan.problem.ladders == {"full.loss": ("model.loss", "proxy.loss", "full.loss")}
    assert plan.stages == {"model": 0, "proxy": 0, "full": 1}
    assert "fidelities" in plan.identity


@pytest.mark.parametrize(
    ("fidelities", "told"),
    [
        ("{full.loss: [prxy.loss, full.loss]}", "no evaluator provides 'prxy.loss'"),
        ("{full.loss: [full.loss, proxy.loss]}", "go from the cheapest to full.loss itself"),
        ("{full.loss: [proxy.time, full.loss]}", "proxy.time is in s, and full.loss in J"),
        ("{model.loss: [proxy.loss, model.loss]}", "model.loss costs no measurement"),
    ],
)
def test_a_mistake_in_a_ladder_is_told_with_its_line(tmp_path, fidelities, told):
    with pytest.raises(SpecErrors) as caught:
        plan_in(tmp_path, fidelities)
    assert told in str(caught.value)
    assert "study.yaml:9" in str(caught.value)
