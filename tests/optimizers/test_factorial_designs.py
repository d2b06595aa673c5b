"""A factorial asks all combinations of levels that are legal, or a fraction that is regular."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.errors import StudyError
from dse.optimizers.factorial import Factorial
from dse.optimizers.support.fractional_factorial import fraction
from dse.testing.optimizer_contract import FiniteOptimizerContract, OptimizerContract
from dse.testing.problems import mixed_reals

SPACE = DesignSpace(
    parameters=(
        Ordinal(name="rows", values=(1, 2, 4, 8)),
        Integer(name="banks", low=1, high=9),
        Real(name="clock", low=1.0, high=100.0, scale="log"),
        Choice(name="format", values=("int8", "int4", "fp8")),
    ),
    constraints=(parse("rows * banks <= 40"),),
)
PROBLEM = Problem(space=SPACE, sources={}, objectives=())

SWITCHES = Problem(
    space=DesignSpace(parameters=tuple(Choice(name=n, values=(False, True)) for n in "abcdefgh")),
    sources={},
    objectives=(),
)


def asked(problem: Problem, **options):
    return Factorial(problem, **options).ask(100_000)


class TestOnAFiniteSpace(FiniteOptimizerContract):
    @pytest.fixture
    def make(self):
        return Factorial


class TestOnASpaceWithReals(OptimizerContract):
    @pytest.fixture
    def make(self):
        return Factorial

    @pytest.fixture
    def known(self):
        return mixed_reals()


def test_all_legal_combinations_are_asked_once():
    designs = asked(PROBLEM)
    pairs = sum(rows * banks <= 40 for rows in (1, 2, 4, 8) for banks in range(1, 10))
    assert len(set(designs)) == len(designs) == pairs * 3 * 3
    assert all(design in SPACE for design in designs)


def test_a_real_parameter_has_levels_on_its_scale():
    levels = sorted({design["clock"] for design in asked(PROBLEM)})
    assert levels == pytest.approx([1.0, 10.0, 100.0])


def test_fewer_levels_are_spread_from_the_first_to_the_last():
    designs = asked(PROBLEM, levels=2)
    assert {design["rows"] for design in designs} == {1, 8}
    assert {design["banks"] for design in designs} == {1, 9}
    assert {design["format"] for design in designs} == {"int8", "int4", "fp8"}


def test_the_order_is_drawn_by_the_seed():
    other = replace(PROBLEM, seed=1)
    assert asked(PROBLEM) == asked(PROBLEM)
    assert asked(PROBLEM) != asked(other)
    assert set(asked(PROBLEM)) == set(asked(other))


def test_when_all_is_told_it_says_what_was_characterised():
    optimizer = Factorial(SWITCHES)
    trials = [
        Trial(number=number, design=design, state=State.DONE)
        for number, design in enumerate(optimizer.ask(1_000))
    ]
    optimizer.tell(trials[:-1])
    assert optimizer.events() == []
    optimizer.tell(trials[-1:])
    assert [event.kind for event in optimizer.events()] == ["characterised", "exact"]
    assert optimizer.ask(1) == []


def test_levels_that_leave_designs_out_prove_nothing():
    optimizer = Factorial(PROBLEM)
    designs = optimizer.ask(100_000)
    optimizer.tell([Trial(number=n, design=d, state=State.DONE) for n, d in enumerate(designs)])
    assert [event.kind for event in optimizer.events()] == ["characterised"]


# Box and Hunter 1961 (and any table of two-level designs since): runs of the least fraction.
TABLE = [
    (3, 3, 4),
    (7, 3, 8),
    (15, 3, 16),
    (4, 4, 8),
    (8, 4, 16),
    (16, 4, 32),
    (5, 5, 16),
    (8, 5, 64),
]


@pytest.mark.parametrize(("factors", "resolution", "runs"), TABLE)
def test_a_fraction_has_the_runs_of_the_tables(factors, resolution, runs):
    assert fraction(factors, resolution).shape == (runs, factors)


@pytest.mark.parametrize(("factors", "resolution", "runs"), TABLE)
def test_no_product_of_fewer_factors_than_the_resolution_is_constant(factors, resolution, runs):
    signs = 1 - 2 * fraction(factors, resolution)
    sizes = range(1, resolution)
    products = [
        signs[:, list(g)].prod(axis=1) for k in sizes for g in combinations(range(factors), k)
    ]
    assert np.abs(np.sum(products, axis=1)).max() == 0


def test_a_fraction_asks_that_many_designs():
    assert len(asked(SWITCHES, resolution=4)) == 16
    assert len(asked(SWITCHES, resolution=5)) == 64


def test_runs_that_break_a_rule_are_left_out_and_told():
    space = replace(SWITCHES.space, constraints=(parse("not (a and b)"),))
    optimizer = Factorial(replace(SWITCHES, space=space), resolution=4)
    designs = optimizer.ask(100)
    assert len(designs) == 12
    optimizer.tell([Trial(number=n, design=d, state=State.DONE) for n, d in enumerate(designs)])
    assert "4 of its 16 runs break a rule" in optimizer.events()[0].text


REFUSED = {
    "too many": (PROBLEM, {"most": 100}, "288 are more than the 100"),
    "one level": (PROBLEM, {"levels": 1}, "1 levels show no effect"),
    "no such resolution": (SWITCHES, {"resolution": 2}, "no fraction of resolution 2"),
    "a fraction of three levels": (SWITCHES, {"resolution": 4, "levels": 3}, "two levels"),
    "three words": (PROBLEM, {"resolution": 4}, "format has 3 choices"),
    "what exists only sometimes": (mixed_reals().problem, {"resolution": 4}, "knob exists only"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_characterised_is_refused(case):
    problem, options, words = REFUSED[case]
    with pytest.raises(StudyError, match=words):
        Factorial(problem, **options)
