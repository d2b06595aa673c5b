"""The exhaustive optimizer asks the exact front, and says what it proved."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.design import Design
from dse.core.metric import Failure, Metrics
from dse.core.parameter import Integer
from dse.core.pareto import ParetoSet
from dse.core.space import DesignSpace
from dse.errors import StudyError
from dse.optimizers.exact.exact_front import exact_front
from dse.optimizers.exhaustive import Exhaustive
from dse.testing.known import beaten, played, problem_of
from dse.testing.problems import all_infeasible, one_design, tiny_codesign, zdt1


def test_it_finds_the_front_that_brute_force_finds():
    known = tiny_codesign("modelled")
    trials = played(known, Exhaustive(known.problem), 1_000)
    losses = ParetoSet.of(known.problem, trials).losses
    assert np.unique(losses, axis=0).tolist() == known.front.tolist()


def test_it_asks_nothing_but_the_front():
    known = tiny_codesign("modelled")
    trials = played(known, Exhaustive(known.problem), 1_000)
    assert len(trials) == len(known.front)


def test_it_says_how_many_designs_prove_the_front():
    known = tiny_codesign("modelled")
    optimizer = Exhaustive(known.problem)
    played(known, optimizer, 1_000)
    assert [(event.kind, event.text) for event in optimizer.events()] == [
        ("exact", "exact over all 640 legal designs; 20 cannot exist; 565 keep every limit")
    ]


def test_it_says_nothing_before_all_of_the_front_is_told():
    known = tiny_codesign("modelled")
    optimizer = Exhaustive(known.problem)
    played(known, optimizer, len(known.front) - 1)
    (last,) = optimizer.ask(5)
    assert optimizer.ask(5, [last]) == []
    assert optimizer.events() == []


def test_the_front_does_not_depend_on_how_the_stream_is_cut():
    space = DesignSpace(parameters=tuple(Integer(name=name, low=0, high=9) for name in "abcde"))

    def truth(batch):
        a, b, c, d, e = (batch[name] * 1.0 for name in "abcde")
        return Metrics(columns={"f": (a - 3) ** 2 + b * c, "g": (a - 7) ** 2 + (9 - b) * d + e})

    goals = {"f": "minimize", "g": "minimize"}
    problem = problem_of(space, dict.fromkeys("fg", "modelled"), goals, truth)
    got = truth(next(space.enumerate(100_000)))
    losses = np.column_stack([got.columns["f"], got.columns["g"]])
    corner = np.unique(losses[losses.sum(axis=1) < 60], axis=0)
    found = exact_front(problem)
    front = truth(space.batch(found.designs)).columns
    assert found.total == 100_000
    assert np.unique(np.column_stack([front["f"], front["g"]]), axis=0).tolist() == (
        corner[~beaten(corner)].tolist()
    )


def test_if_no_design_is_feasible_it_asks_the_one_that_breaks_the_limits_least():
    known = all_infeasible("modelled")
    optimizer = Exhaustive(known.problem)
    (trial,) = played(known, optimizer, 5)
    assert trial.design == Design({"tp": 1, "dp": 1})
    assert "exact over all 8 legal designs; no design is feasible" in optimizer.events()[0].text


def test_if_no_design_can_exist_it_asks_nothing():
    problem = all_infeasible("modelled").problem
    failures = dict.fromkeys(range(8), Failure(kind="infeasible", reason="never"))
    broken = replace(
        problem,
        model=lambda batch: Metrics(columns=problem.model(batch).columns, failures=failures),
    )
    assert Exhaustive(broken).ask(5) == []


def test_what_has_to_be_measured_is_asked_design_by_design_in_their_order():
    known = tiny_codesign("measured")
    optimizer = Exhaustive(known.problem)
    first = known.problem.space.legal.at_indices(np.arange(5)).designs()
    assert optimizer.ask(5) == first
    assert optimizer.events() == []


def test_the_only_design_is_the_front():
    known = one_design("modelled")
    assert len(Exhaustive(known.problem).ask(5)) == 1


def test_a_real_parameter_is_refused_with_a_way_out():
    with pytest.raises(StudyError, match="cannot be listed") as error:
        Exhaustive(zdt1().problem)
    assert "nsga2" in error.value.hint
