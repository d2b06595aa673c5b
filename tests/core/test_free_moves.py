"""A lone parameter steps as one of a group would: the longer the step, the less often."""

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Integer, Ordinal
from dse.core.space import DesignSpace
from dse.core.variation import mutate_designs

DRAWS = 40_000


def _shares(space, name, start):
    """How often a mutant of ``start`` has each value."""
    parents = space.batch([start] * DRAWS)
    values, counts = np.unique(
        mutate_designs(space, parents, np.random.default_rng(1))[name], return_counts=True
    )
    return dict(zip(values.tolist(), counts / counts.sum(), strict=True))


def _one_over(steps):
    weights = {value: 1 / step for value, step in steps.items()}
    return {value: weight / sum(weights.values()) for value, weight in weights.items()}


@pytest.mark.parametrize("start", [0, 3, 9])
def test_a_number_is_reached_as_often_as_it_is_near(start):
    space = DesignSpace(parameters=(Integer(name="n", low=0, high=9),))
    expected = _one_over({n: abs(n - start) for n in range(10) if n != start})
    assert _shares(space, "n", {"n": start}) == pytest.approx(expected, abs=0.01)


def test_so_it_is_where_a_rule_leaves_some_out():
    space = DesignSpace(
        parameters=(Integer(name="n", low=0, high=9),), constraints=(parse("n != 4"),)
    )
    expected = _one_over({n: abs(n - 3) for n in range(10) if n not in (3, 4)})
    assert _shares(space, "n", {"n": 3}) == pytest.approx(expected, abs=0.01)


def test_an_ordinal_steps_by_rank():
    space = DesignSpace(parameters=(Ordinal(name="n", values=(1, 2, 4, 1024)),))
    expected = _one_over({1: 1, 4: 1, 1024: 2})
    assert _shares(space, "n", {"n": 2}) == pytest.approx(expected, abs=0.01)


def test_all_other_choices_come_alike():
    space = DesignSpace(parameters=(Choice(name="c", values=("a", "b", "c", "d")),))
    expected = dict.fromkeys("acd", 1 / 3)
    assert _shares(space, "c", {"c": "b"}) == pytest.approx(expected, abs=0.01)


def test_a_parameter_with_one_value_stays():
    space = DesignSpace(parameters=(Integer(name="n", low=3, high=3),))
    assert len(mutate_designs(space, space.batch([{"n": 3}]), np.random.default_rng(0))) == 0
