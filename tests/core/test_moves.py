"""Crossover, mutation and repair stay in the space."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dse.core.expressions.parser import parse
from dse.core.legal_set.component import LISTED_ROWS
from dse.core.legal_set.neighbours import nearest
from dse.core.parameter import Ordinal, Real
from dse.core.space import DesignSpace
from dse.core.variation import cross_parents, mutate_designs
from dse.testing.problems import mixed_reals
from dse.testing.strategies import spaces

SPLIT = DesignSpace(
    parameters=tuple(Ordinal(name=name, values=(1, 2, 4, 8)) for name in ("tp", "pp", "dp")),
    constraints=(parse("tp * pp * dp == 8"),),
)


@given(spaces(), st.integers(0, 100))
def test_children_of_legal_parents_are_legal(space, seed):
    assume(space.count())
    rng = np.random.default_rng(seed)
    children = cross_parents(space, space.sample(6, rng), space.sample(6, rng), rng)
    assert all(child in space for child in children)
    assert len(children) == 6


@given(spaces(), st.integers(0, 100))
def test_mutants_of_legal_designs_are_legal(space, seed):
    assume(space.count())
    rng = np.random.default_rng(seed)
    mutants = mutate_designs(space, space.sample(6, rng), rng)
    assert all(mutant in space for mutant in mutants)


def test_moves_keep_rules_over_reals():
    space = mixed_reals().problem.space
    rng = np.random.default_rng(0)
    parents = space.sample(200, rng)
    children = mutate_designs(
        space, cross_parents(space, parents, space.sample(200, rng), rng), rng
    )
    assert all(child in space for child in children)


def test_a_mutant_differs_where_every_component_can_move():
    rng = np.random.default_rng(0)
    parents = SPLIT.sample(50, rng)
    mutants = mutate_designs(SPLIT, parents, rng)
    assert all(one != other for one, other in zip(parents, mutants, strict=True))


def test_a_child_of_two_equal_parents_is_like_them():
    rng = np.random.default_rng(0)
    parents = SPLIT.sample(20, rng)
    assert cross_parents(SPLIT, parents, parents, rng).designs() == parents.designs()


def test_short_steps_come_more_often_than_long_ones():
    space = DesignSpace(parameters=(Ordinal(name="n", values=tuple(range(101))),))
    start = space.batch([{"n": 50}] * 500)
    steps = np.abs(mutate_designs(space, start, np.random.default_rng(0))["n"] - 50)
    assert np.median(steps) < 12
    assert steps.max() > 40


def test_reals_move_within_their_bounds():
    space = DesignSpace(parameters=(Real(name="x", low=1e-3, high=1.0, scale="log"),))
    start = space.batch([{"x": 1e-3}, {"x": 1.0}] * 100)
    moved = mutate_designs(space, start, np.random.default_rng(0))["x"]
    assert 1e-3 <= moved.min() < moved.max() <= 1.0


def test_a_design_that_cannot_move_has_no_mutant():
    space = DesignSpace(
        parameters=(
            Real(name="x", low=0.0, high=1.0),
            Ordinal(name="n", values=(7,)),
            Real(name="knob", low=0.0, high=1.0),
        ),
        conditions={"knob": parse("n > 7"), "x": parse("n > 7")},
    )
    start = space.sample(50, np.random.default_rng(0))
    assert len(mutate_designs(space, start, np.random.default_rng(0))) == 0


def test_a_mutant_is_never_its_parent_with_another_rounding():
    space = DesignSpace(parameters=tuple(Real(name=name, low=0.1, high=0.7) for name in "abc"))
    rng = np.random.default_rng(0)
    start = space.batch([{"a": 0.1, "b": 0.1, "c": float(c)} for c in 0.1 + 0.6 * rng.random(300)])
    mutants = space.legal.shares(mutate_designs(space, start, rng))
    gaps = np.abs(mutants[:, None, :] - space.legal.shares(start)[None, :, :]).max(axis=2)
    assert gaps.min() > 1e-9


def test_a_group_too_large_to_list_is_moved_in_along_its_graph():
    values = tuple(range(1, 61))
    space = DesignSpace(
        parameters=tuple(Ordinal(name=name, values=values) for name in "abc"),
        constraints=(parse("a + b + c <= 160"),),
    )
    rng = np.random.default_rng(0)
    start = space.sample(20, rng)
    mutants = mutate_designs(space, start, rng)
    assert space.legal.components[0].count > LISTED_ROWS
    assert all(mutant in space for mutant in mutants)
    assert all(one != other for one, other in zip(start, mutants, strict=True))


def test_a_legal_combination_is_its_own_nearest():
    component = SPLIT.legal.components[0]
    assert (nearest(component, component.rows) == component.rows).all()


@pytest.mark.parametrize(
    ("wanted", "found"), [((3, 3, 0), (2, 1, 0)), ((0, 0, 0), (1, 1, 1)), ((3, 0, 1), (3, 0, 0))]
)
def test_an_illegal_combination_is_taken_to_one_at_the_least_distance(wanted, found):
    component = SPLIT.legal.components[0]
    got = nearest(component, np.array([wanted], dtype=np.int32))[0]
    assert np.abs(got - wanted).sum() == np.abs(np.array(found) - wanted).sum()
