"""CMA-ES follows a rotated valley, keeps a margin for integers and refuses what has no order."""

from dataclasses import replace

import numpy as np
import pytest

from dse.api.program import check
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metrics
from dse.core.parameter import Choice, Integer, Real
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.errors import PluginError, StudyError
from dse.optimizers.cma_es import CmaEs
from dse.optimizers.nsga2 import nsga2
from dse.testing.known import Known, played, problem_of
from dse.testing.optimizer_contract import FiniteOptimizerContract, OptimizerContract

WEIGHTS = 10.0 ** np.linspace(0, 3, 4)
TURNED = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]


def valley(batch):
    """An ellipsoid whose axes lie across those of the parameters, with a region that fails."""
    points = np.column_stack([batch[name] for name in sorted(batch.columns)])
    points = points / 100 if np.issubdtype(points.dtype, np.integer) else points
    values = (((points - 0.3) @ TURNED.T) ** 2 * WEIGHTS[: points.shape[1]]).sum(axis=1)
    failed = np.flatnonzero(points[:, 0] > 0.9)
    failures = {row: Failure(kind="raised", reason="too large") for row in failed.tolist()}
    return Metrics(columns={"loss": values}, failures=failures)


def known_of(*parameters, constraints=()):
    space = DesignSpace(parameters=parameters, constraints=constraints)
    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, valley)
    return Known(problem=problem, truth=valley, front=np.zeros((1, 1)), reference=np.ones(1))


REALS = known_of(*(Real(name=f"x{place}", low=0.0, high=1.0) for place in range(4)))
INTEGERS = known_of(*(Integer(name=f"x{place}", low=0, high=100) for place in range(4)))
RULED = known_of(
    *(Integer(name=f"x{place}", low=0, high=2) for place in range(4)),
    constraints=(parse("x0 + x1 <= x2 + 2"),),
)


class TestOnReals(OptimizerContract):
    @pytest.fixture(params=[None, 5])
    def make(self, request):
        return lambda problem: CmaEs(problem, pop_size=request.param)

    @pytest.fixture
    def known(self):
        return REALS


class TestOnIntegersWithARule(FiniteOptimizerContract):
    @pytest.fixture
    def make(self):
        return lambda problem: CmaEs(problem, pop_size=4)

    @pytest.fixture
    def known(self):
        return RULED


def best(known, make, budget):
    trials = played(known, make(known.problem), budget, at_once=8)
    return min(trial.metrics["loss"] for trial in trials if trial.metrics)


@pytest.mark.slow
@pytest.mark.parametrize("known", [REALS, INTEGERS], ids=["reals", "integers"])
def test_it_follows_a_valley_across_the_parameters(known):
    seeds = [known.seeded(seed) for seed in range(3)]
    own = np.median([best(one, CmaEs, 240) for one in seeds])
    assert own < 0.5 * np.median([best(one, nsga2, 240) for one in seeds])


def test_a_generation_of_failures_alone_changes_no_distribution():
    optimizer = CmaEs(REALS.problem, pop_size=4)
    mean = optimizer._search.mean.copy()
    designs = optimizer.ask(4)
    optimizer.tell([Trial(number=n, design=d, state=State.FAILED) for n, d in enumerate(designs)])
    assert (optimizer._search.mean == mean).all()


def test_it_restarts_with_a_larger_population_where_nothing_differs():
    flat = replace(REALS, truth=lambda batch: Metrics(columns={"loss": np.ones(len(batch))}))
    optimizer = CmaEs(flat.problem, pop_size=4)
    played(flat, optimizer, 4 * 45, at_once=4)
    assert optimizer._search.population_size == 8


def refuse(problem, *words, **options):
    with pytest.raises((StudyError, PluginError)) as caught:
        CmaEs(problem, **options)
    assert all(word in f"{caught.value.problem} {caught.value.hint}" for word in words)


def test_choices_and_conditions_are_refused_by_name():
    shape = Choice(name="shape", values=("round", "square", "flat"))
    real = Real(name="x", low=0.0, high=1.0)
    refuse(known_of(shape, real).problem, "shape", "nsga2")
    two = Choice(name="two", values=("a", "b"))
    space = DesignSpace(parameters=(two, real), conditions={"x": parse("two == 'a'")})
    refuse(replace(known_of(two, real).problem, space=space), "condition: x")


def test_several_objectives_are_refused():
    twice = replace(REALS.problem, objectives=REALS.problem.objectives * 2)
    refuse(twice, "one objective", "2")


def test_options_out_of_range_are_refused():
    refuse(REALS.problem, "pop_size is 3", "4 or more", pop_size=3)
    refuse(REALS.problem, "sigma is 2", sigma=2.0)


def test_checking_a_study_names_what_it_refuses(tmp_path):
    (tmp_path / "space.yaml").write_text(
        "space: s\nparameters:\n  x: {real: [0, 1]}\n  mode: {choice: [a, b, c]}\n"
    )
    (tmp_path / "study.yaml").write_text(
        "study: s\nspace: space.yaml\n"
        "evaluators:\n  e: {use: expression, metrics: {f: {formula: x * x}}}\n"
        "unread: [mode]\nobjectives: [{minimize: e.f}]\noptimizer: cma-es\n"
    )
    (error,) = check(tmp_path / "study.yaml")["errors"]
    assert "study.yaml:7" in error["where"]
    assert "choices: mode" in error["problem"]
