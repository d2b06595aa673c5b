"""A point that Ax suggests becomes the nearest legal design."""

import numpy as np
import pytest

from dse.core.design import Design
from dse.core.parameter import Choice, Integer, Real
from dse.core.space import DesignSpace
from dse.optimizers.adapters.encoded_points import (
    axes,
    encode_design,
    has_no_order,
    nearest_unseen_design,
)
from dse.optimizers.support.constraints import known_admissible
from dse.optimizers.support.unseen_designs import fresh
from dse.testing.problems import mixed_reals, one_design, pocket_codesign

POCKET = pocket_codesign().problem
GOOD = Design({"tp": 2, "dp": 4, "format": "mxfp4", "group": 64})


def find_nearest(problem, point, taken=()):
    return nearest_unseen_design(problem, point, taken, np.random.default_rng(0))


def test_a_legal_point_stays_as_it_is():
    assert find_nearest(POCKET, encode_design(POCKET.space, GOOD)) == [GOOD]


def test_a_point_with_reals_stays_too():
    space = mixed_reals().problem.space
    design = Design({"tp": 2, "pp": 2, "mode": "tuned", "x": 0.25, "knob": 0.01})
    (got,) = find_nearest(mixed_reals().problem, encode_design(space, design))
    assert (got["mode"], got["x"], got["knob"]) == ("tuned", 0.25, pytest.approx(0.01))


def test_a_point_for_an_inactive_parameter_is_forgotten():
    point = {**encode_design(POCKET.space, GOOD), "p2": "v0"}
    assert find_nearest(POCKET, point) == [Design({"tp": 2, "dp": 4, "format": "bf16"})]


def test_an_illegal_point_goes_to_a_legal_design_near_it():
    (got,) = find_nearest(POCKET, {"p0": 2, "p1": 3, "p2": "v1", "p3": 0})  # tp * dp would be 64
    assert (got["tp"], got["format"]) == (4, "fp8")
    assert got in POCKET.space


def test_what_was_asked_before_is_not_suggested_again():
    (got,) = find_nearest(POCKET, encode_design(POCKET.space, GOOD), {GOOD})
    assert got != GOOD
    assert got in POCKET.space


def test_a_point_that_breaks_a_known_limit_is_moved_within_it():
    heavy = Design({"tp": 1, "dp": 8, "format": "bf16"})
    (got,) = find_nearest(POCKET, encode_design(POCKET.space, heavy))
    assert not known_admissible(POCKET, POCKET.space.batch([heavy])).any()
    assert known_admissible(POCKET, POCKET.space.batch([got])).all()


def test_the_last_design_is_nearest_to_any_point():
    designs = fresh(POCKET.space, 24, np.random.default_rng(0), ())
    assert (
        find_nearest(POCKET, encode_design(POCKET.space, designs[0]), designs[:-1]) == designs[-1:]
    )


def test_nothing_is_suggested_when_nothing_is_left():
    designs = fresh(POCKET.space, 24, np.random.default_rng(0), ())
    assert find_nearest(POCKET, encode_design(POCKET.space, designs[0]), designs) == []


def test_parameters_that_cannot_vary_are_kept_from_ax():
    space = DesignSpace(
        parameters=(
            Integer(name="lambda", low=3, high=3),
            Choice(name="E", values=("a", "b")),
            Choice(name="S", values=("a", "b", "c")),
            Real(name="x", low=1.0, high=1.0),
        )
    )
    assert {name: has_no_order(axis) for name, axis in axes(space).items()} == {
        "p1": False,
        "p2": True,
    }


def test_a_space_of_one_design_has_coupled_axes_but_one_answer():
    problem = one_design().problem
    (only,) = fresh(problem.space, 1, np.random.default_rng(0), ())
    assert find_nearest(problem, {"p0": 0, "p1": 0}) == [only]
