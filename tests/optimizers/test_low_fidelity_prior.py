"""Modelled fidelities of a fidelity ladder in the grey-box search."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metric, Metrics
from dse.core.objective import Objective
from dse.core.parameter import Integer
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.trial import Trial
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import Pipeline
from dse.optimizers.bayesian.low_fidelity_prior import LowFidelityPrior, agrees
from dse.optimizers.grey_box import GreyBox
from dse.testing.known import Known
from dse.testing.optimizer_contract import FiniteOptimizerContract

MEMORY = 40.0
"""Largest batch per card."""
LADDER = {"server.time": ("model.time", "server.time")}


class Service:
    """Evaluator of a serving time; the modelled one knows which batches fit in memory."""

    optional, units, version = frozenset(), {}, "1"

    def __init__(self, formula, kind, unit):
        self.reads = frozenset({"cards", "batch"})
        self.provides = {"time": Metric(name="time", unit=unit)}
        self.kind, self.formula = kind, formula

    def evaluate(self, batch):
        cards, size = batch["cards"].astype(float), batch["batch"].astype(float)
        over = np.flatnonzero(size / cards > MEMORY).tolist() if self.kind == "modelled" else []
        failures = {row: Failure(kind="infeasible", reason="exceeds the memory") for row in over}
        return Metrics(columns={"time": self.formula(cards, size)}, failures=failures)


def truth(cards, size):
    return (3 + size / cards**0.8) * (1.0 + 0.05 * np.sin(2 * cards))


def good(cards, size):
    return 0.0004 * (3 + size / cards**0.8)


def blind(cards, size):
    return 0.0004 * (3 + size / cards**0.5)


def mirrored(cards, size):
    return good(9 - cards, 65 - size)  # the order is reversed


def case(fidelity=good, ladders=LADDER) -> Known:
    names = {"cards": "cards", "batch": "batch"}
    pipeline = Pipeline(
        [
            Bound(name="model", evaluator=Service(fidelity, "modelled", "s"), names=names),
            Bound(name="server", evaluator=Service(truth, "measured", "ms"), names=names),
        ]
    )
    pipeline.may_start = True
    space = DesignSpace(
        parameters=(Integer(name="cards", low=1, high=8), Integer(name="batch", low=1, high=64))
    )
    problem = Problem(
        space=space,
        sources=pipeline.sources,
        objectives=(
            Objective(expression=parse("server.time"), goal="minimize"),
            Objective(expression=parse("batch / server.time / cards"), goal="maximize"),
        ),
        model=pipeline.known,
        ladders=ladders,
    )

    def measure(batch) -> Metrics:
        low = pipeline.known(batch)
        time = truth(batch["cards"].astype(float), batch["batch"].astype(float))
        return Metrics(columns={**low.columns, "server.time": time}, failures=low.failures)

    every = space.batch([{"cards": c, "batch": b} for c in range(1, 9) for b in range(1, 65)])
    known = Known(problem=problem, truth=measure, front=np.zeros((1, 2)), reference=np.zeros(2))
    losses = problem.trial_losses(known.finished(every.designs()))
    losses = losses[np.isfinite(losses).all(axis=1)]
    return Known(
        problem=problem,
        truth=measure,
        front=losses[nondominated(losses)],
        reference=losses.max(axis=0),
    )


def search(known: Known, runs: int) -> list[Trial]:
    optimizer, done = GreyBox(known.problem), []
    while len(done) < runs:
        done += known.finished(optimizer.ask(1), len(done))
        optimizer.tell(done[-1:])
    return done


def test_first_designs_are_on_the_predicted_front():
    known = case()
    fidelities = LowFidelityPrior(known.problem, GreyBox(known.problem)._split)
    chosen = known.problem.space.batch(GreyBox(known.problem).ask(4))
    columns, _ = fidelities.columns(chosen)
    assert columns["server.time"].values.max() < 100
    low = known.problem.losses(columns, 4)
    assert len(nondominated(low)) == 4


def test_first_designs_are_better_than_the_reference_point_of_the_user():
    known = case()
    problem = replace(known.problem, fixed_reference=(6.0, 1.0))  # ms; sequences a ms and card
    chosen = problem.space.batch(GreyBox(problem).ask(4))
    columns, _ = LowFidelityPrior(problem, GreyBox(problem)._split).columns(chosen)
    low = problem.losses(columns, 4)
    assert (low < [6.0, -1.0]).all()


def test_a_reference_point_that_no_prediction_reaches_does_not_choose_the_first_designs():
    known = case()
    problem = replace(known.problem, fixed_reference=(0.5, 1.0))
    assert GreyBox(problem).ask(4) == GreyBox(known.problem).ask(4)


def test_a_rung_with_the_right_shape_saves_measurements():
    with_rung, without = case(), case(ladders={})
    assert with_rung.share(search(with_rung, 8)) > without.share(search(without, 8))


def test_designs_unlike_those_of_a_rung_that_is_wrong_about_them_are_found():
    known = case(blind)  # its front has one card alone
    done = search(known, 20)
    assert known.share(done[:4]) < 0.93
    assert known.share(done) > 0.95


def test_a_rung_is_converted_to_the_unit_of_the_metric():
    known = case()
    columns, _ = LowFidelityPrior(known.problem, GreyBox(known.problem)._split).columns(
        known.problem.space.batch([{"cards": 1, "batch": 7}])
    )
    assert columns["server.time"].values[0] == pytest.approx(0.4 * 10)


def test_a_misleading_rung_is_dropped():
    known = case(mirrored)
    done = search(known, 12)
    fidelities = LowFidelityPrior(known.problem, GreyBox(known.problem)._split)
    assert fidelities.is_used(())
    assert not fidelities.is_used(done)


def test_designs_that_the_model_finds_too_large_for_memory_are_not_run():
    done = search(case(), 20)
    assert max(trial.design["batch"] / trial.design["cards"] for trial in done) <= MEMORY


def test_few_measurements_do_not_refute_a_rung_and_many_do():
    values = np.arange(8.0)
    assert agrees(-values[:2], values[:2])
    assert not agrees(-values, values)


class TestContract(FiniteOptimizerContract):
    @pytest.fixture
    def make(self):
        return GreyBox

    @pytest.fixture
    def known(self) -> Known:
        return case()
