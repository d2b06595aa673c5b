"""Fresh designs are new, uniform, and end with the space."""

from collections import Counter

import numpy as np

from dse.core.expressions.parser import parse
from dse.core.parameter import Integer, Real
from dse.core.space import DesignSpace
from dse.optimizers.support.unseen_designs import fresh, unseen
from dse.testing.problems import pocket_codesign, tiny_codesign

SPACE = pocket_codesign().problem.space
MANY = DesignSpace(parameters=tuple(Integer(name=name, low=1, high=40) for name in "abc"))


def test_fresh_designs_are_not_taken_and_not_twice():
    taken = fresh(SPACE, 10, np.random.default_rng(0), ())
    new = fresh(SPACE, 10, np.random.default_rng(0), taken)
    assert len({*taken, *new}) == 20


def test_a_listed_space_ends_with_its_last_design():
    assert len(set(fresh(SPACE, 99, np.random.default_rng(0), ()))) == SPACE.count() == 24


def test_a_space_too_large_to_be_listed_gives_new_designs_too():
    taken = fresh(MANY, 500, np.random.default_rng(0), ())
    new = fresh(MANY, 500, np.random.default_rng(0), taken)
    assert len({*taken, *new}) == 1000


def test_fresh_designs_are_drawn_uniformly():
    space = tiny_codesign().problem.space
    rng = np.random.default_rng(0)
    formats = Counter(d["format"] for _ in range(40) for d in fresh(space, 50, rng, ()))
    assert abs(formats["mxfp4"] / 2000 - 0.6) < 0.05


def test_a_space_with_reals_that_are_all_fixed_ends():
    space = DesignSpace(parameters=(Real(name="x", low=2.0, high=2.0),))
    assert len(fresh(space, 3, np.random.default_rng(0), ())) == 1


def test_an_empty_space_has_no_fresh_designs():
    space = DesignSpace(parameters=MANY.parameters, constraints=(parse("a > 40"),))
    assert fresh(space, 3, np.random.default_rng(0), ()) == []


def test_unseen_keeps_the_order():
    batch = SPACE.batch([*fresh(SPACE, 4, np.random.default_rng(0), ())] * 2)
    designs = batch.designs()
    assert unseen(batch, designs[:1]) == designs[1:4]
