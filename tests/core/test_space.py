"""The legal set: counted, listed, drawn and moved in, always legal."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from scipy.stats import chisquare

from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.legal_set.solution import solve_component
from dse.core.parameter import Choice, Ordinal, Real
from dse.core.space import DesignSpace
from dse.errors import DesignError
from dse.testing.strategies import spaces


def every_legal_design(space: DesignSpace) -> set[Design]:
    """By trying all combinations, with each parameter absent too: slow and surely right."""
    axes = [[(p.name, v) for v in (None, *p.values)] for p in space.parameters]  # type: ignore[union-attr]
    designs = ({n: v for n, v in row if v is not None} for row in itertools.product(*axes))
    return {Design(design) for design in designs if design in space}


def plan_space() -> DesignSpace:
    def pow2(name: str, top: int) -> Ordinal:
        return Ordinal(name=name, values=tuple(2**e for e in range(top + 1)))

    return DesignSpace(
        parameters=(
            pow2("tp", 3),
            pow2("pp", 4),
            pow2("dp", 6),
            Choice(name="format", values=("int8", "mxfp4")),
            Ordinal(name="group", values=(32, 64, 128)),
        ),
        conditions={"group": parse("format == 'int8'")},
        constraints=(parse("tp * pp * dp == 64"),),
    )


@given(spaces())
def test_the_count_and_the_list_are_what_trying_all_combinations_finds(space):
    expected = every_legal_design(space)
    listed = [design for batch in space.enumerate(7) for design in batch.designs()]
    assert space.count() == len(expected) == len(listed)
    assert set(listed) == expected


@given(spaces())
def test_what_is_drawn_is_legal(space):
    assume(space.count())
    drawn = space.sample(20, np.random.default_rng(0)).designs()
    assert len(drawn) == 20
    assert all(design in space for design in drawn)


@given(spaces())
def test_neighbours_are_legal_and_other_designs(space):
    assume(space.count())
    design = space.sample(1, np.random.default_rng(1)).design(0)
    near = space.neighbours(design).designs()
    assert all(other in space and other != design for other in near)


@given(spaces())
def test_points_of_the_cube_are_legal_designs(space):
    assume(space.count())
    points = np.random.default_rng(2).random((9, space.coordinates))
    assert all(design in space for design in space.at(points).designs())


@given(spaces())
def test_an_index_finds_its_design_back(space):
    assume(space.count())
    places = np.arange(space.count())
    assert (space.indices(space.legal.at_indices(places)) == places).all()


def test_draws_are_uniform_over_the_legal_set():
    space = plan_space()
    drawn = space.indices(space.sample(40_000, np.random.default_rng(3)))
    assert chisquare(np.bincount(drawn, minlength=space.count())).pvalue > 1e-3


def test_draws_by_rejection_are_uniform_too():
    space = plan_space()
    rule = space.constraints[0]
    free = solve_component(space.parameters, space.conditions, ())
    kept = replace(free, constraints=(rule,), dropped=(rule,))
    drawn = space.legal.indices(space.legal.batch([]))  # no design, no index
    assert len(drawn) == 0
    assert kept.count is None
    listed = solve_component(space.parameters, space.conditions, space.constraints)
    places = listed.indices(kept.sample(20_000, np.random.default_rng(4)))
    assert chisquare(np.bincount(places.astype(int), minlength=listed.count)).pvalue > 1e-3


def test_coupled_parameters_move_together():
    space = plan_space()
    start = Design({"tp": 2, "pp": 4, "dp": 8, "format": "mxfp4"})
    moved = [d for d in space.neighbours(start).designs() if d["tp"] == 4]
    assert {(d["pp"], d["dp"]) for d in moved} == {(2, 8), (4, 4)}


def test_a_large_product_is_counted_without_listing_it():
    parameters = tuple(Ordinal(name=f"layer{i}", values=(2, 4, 8)) for i in range(54))
    assert DesignSpace(parameters=parameters).count() == 3**54


def test_a_real_parameter_keeps_a_mixed_rule():
    space = DesignSpace(
        parameters=(Real(name="clock", low=1.0, high=4.0), Ordinal(name="rows", values=(8, 16))),
        constraints=(parse("clock * rows <= 32"),),
    )
    drawn = space.sample(500, np.random.default_rng(5))
    assert space.count() is None
    assert len(drawn) == 500
    assert (drawn["clock"] * drawn["rows"] <= 32).all()


@pytest.mark.parametrize(
    ("design", "problem"),
    [
        ({"tp": 2, "pp": 4, "dp": 4, "format": "mxfp4"}, "the rule 'tp * pp * dp == 64'"),
        ({"tp": 3, "pp": 4, "dp": 8, "format": "mxfp4"}, "tp cannot be 3"),
        ({"tp": 2, "pp": 4, "dp": 8, "format": "int8"}, "group is missing"),
        ({"tp": 2, "pp": 4, "dp": 8, "format": "mxfp4", "group": 32}, "exists only when"),
        ({"tp": 2, "pp": 4, "dp": 8, "fromat": "mxfp4"}, "no parameter 'fromat'"),
    ],
)
def test_the_first_broken_rule_is_named(design, problem):
    with pytest.raises(DesignError, match=problem.replace("*", r"\*")):
        plan_space().check(design)


def test_fixing_a_parameter_leaves_its_part_of_the_space():
    part = plan_space().fixed({"tp": 4, "format": "int8"})
    designs = [design for batch in part.enumerate() for design in batch.designs()]
    assert designs
    assert {(d["tp"], d["format"]) for d in designs} == {(4, "int8")}


def test_a_design_has_one_key_whatever_the_order_of_its_values():
    assert Design({"a": 1, "b": "x"}).key == Design({"b": "x", "a": 1}).key
