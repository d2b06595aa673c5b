"""The model-based optimizer keeps known limits, and owns up when its model fails."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.metric import Metrics
from dse.core.objective import Limit
from dse.core.parameter import Integer, Real
from dse.core.space import DesignSpace
from dse.optimizers.qlognehvi import QLogNehvi
from dse.optimizers.support.constraints import known_admissible
from dse.optimizers.support.unseen_designs import fresh
from dse.testing.known import played, problem_of
from dse.testing.problems import all_infeasible, pocket_codesign, tiny_codesign, zdt1

pytestmark = pytest.mark.slow


def _line(objectives, truth):
    """A problem over two parameters with that many measured objectives."""
    space = DesignSpace(
        parameters=(Real(name="x", low=0, high=1), Integer(name="n", low=1, high=9))
    )
    names = [f"f{place}" for place in range(objectives)]
    kinds, goals = dict.fromkeys(names, "measured"), dict.fromkeys(names, "minimize")
    return problem_of(space, kinds, goals, truth), truth


def _told(problem, truth, count=10):
    known = replace(zdt1(), problem=problem, truth=truth)
    designs = fresh(problem.space, count, np.random.default_rng(2), ())
    optimizer = QLogNehvi(problem)
    optimizer.tell(known.finished(designs))
    return optimizer


def test_no_design_that_breaks_a_known_limit_is_asked_while_another_is_left():
    known = pocket_codesign()
    trials = played(known, QLogNehvi(known.problem), 22, at_once=2)
    asked = known.problem.space.batch([trial.design for trial in trials])
    assert known_admissible(known.problem, asked).all()


def test_after_them_the_others_are_asked_too():
    known = pocket_codesign()
    trials = played(known, QLogNehvi(known.problem), 99, at_once=8)
    assert len(trials) == 24


def test_one_objective_is_improved():
    problem, truth = _line(
        1, lambda batch: Metrics(columns={"f0": (batch["x"] - 0.3) ** 2 + batch["n"] * 0.1})
    )
    optimizer = _told(problem, truth)
    design = optimizer.ask(1)[0]
    assert optimizer.events() == []
    assert design["n"] <= 2


def test_five_objectives_are_no_trouble():
    def truth(batch):
        goals = {f"f{place}": (batch["x"] - place / 5) ** 2 + batch["n"] for place in range(5)}
        return Metrics(columns=goals)

    optimizer = _told(*_line(5, truth))
    assert len(set(optimizer.ask(2))) == 2
    assert optimizer.events() == []


def test_while_nothing_is_feasible_it_asks_what_most_likely_is():
    known = tiny_codesign()
    limit = Limit(text="cost <= 21", slack=parse("21 - cost"), scale=21.0)
    problem = replace(known.problem, limits=(limit,))
    trials = known.finished(fresh(problem.space, 60, np.random.default_rng(2), ()))
    dear = [trial for trial in trials if trial.metrics.get("cost", 0) > 21][:20]
    optimizer = QLogNehvi(problem)
    optimizer.tell(dear)
    assert problem.feasible(known.finished(optimizer.ask(1))).all()


def test_a_problem_without_feasible_designs_is_no_trouble():
    known = all_infeasible()
    assert len(played(known, QLogNehvi(known.problem, initial=3), 99)) == 8


def test_numbers_that_no_model_can_take_lead_to_a_random_design_and_an_event():
    problem, truth = _line(
        2, lambda batch: Metrics(columns={"f0": (batch["x"] - 0.5) * 1.7e308, "f1": batch["x"]})
    )
    optimizer = _told(problem, truth)
    assert len(optimizer.ask(2)) == 2
    assert [event.kind for event in optimizer.events()] == ["fallback"]


def test_a_batch_is_spread_and_not_one_point_over_and_over():
    known = zdt1(2)
    optimizer = _told(known.problem, known.truth)
    asked = known.problem.space.batch(optimizer.ask(4))
    assert np.ptp(asked["x0"]) > 0.2
