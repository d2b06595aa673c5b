"""What once went wrong in the legal set and in formulas, so that it does not again."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace


def test_a_product_beyond_64_bits_does_not_wrap_round():
    a, b = (Ordinal(name=n, values=(1, 2**40)) for n in "ab")
    assert DesignSpace(parameters=(a, b), constraints=(parse("a * b <= 1e19"),)).count() == 3
    assert parse("a * b").values(Batch.of([{"a": 2**40, "b": 2**40}]).columns, 1).values > 1e24


def test_booleans_are_counted_as_numbers():
    flags = tuple(Choice(name=n, values=(False, True)) for n in "abc")
    assert DesignSpace(parameters=flags, constraints=(parse("a + b + c <= 1"),)).count() == 4
    assert DesignSpace(parameters=flags, constraints=(parse("a - b == 0"),)).count() == 4


def test_what_is_drawn_of_a_mixed_choice_is_a_value_of_it():
    space = DesignSpace(parameters=(Choice(name="c", values=(0, 0.5, 1, True, "no")),))
    drawn = space.sample(100, np.random.default_rng(0)).designs()
    assert all(design in space for design in drawn)
    assert len({design.key for design in drawn}) == 5


def test_a_chain_of_conditional_reals_holds_in_any_order():
    space = DesignSpace(
        parameters=(
            Real(name="b", low=0, high=1),
            Real(name="a", low=0, high=1),
            Choice(name="flag", values=(False, True)),
        ),
        conditions={"b": parse("a > 0.5"), "a": parse("flag == true")},
    )
    drawn = space.sample(200, np.random.default_rng(0)).designs()
    assert all(design in space for design in drawn)
    assert {len(design) for design in drawn} == {1, 2, 3}


def test_a_rule_that_is_never_true_leaves_nothing_of_a_real_space():
    space = DesignSpace(parameters=(Real(name="a", low=0, high=1),), constraints=(parse("1 > 2"),))
    with pytest.raises(Exception, match="no legal design"):
        space.sample(1, np.random.default_rng(0))


def test_a_real_parameter_can_be_fixed():
    space = DesignSpace(
        parameters=(Real(name="a", low=0, high=1), Ordinal(name="b", values=(1, 2))),
        constraints=(parse("a * b <= 1"),),
    )
    drawn = space.fixed({"a": 0.75}).sample(5, np.random.default_rng(0)).designs()
    assert {(d["a"], d["b"]) for d in drawn} == {(0.75, 1)}


def test_a_space_too_large_for_64_bits_is_indexed():
    space = DesignSpace(parameters=tuple(Integer(name=f"p{i}", low=0, high=9999) for i in range(6)))
    assert space.count() == 10**24
    last = np.array([10**24 - 1, 12345], dtype=object)
    assert space.indices(space.legal.at_indices(last)).tolist() == last.tolist()


def test_a_move_leaves_the_real_parameters_that_did_not_move_as_they_were():
    space = DesignSpace(
        parameters=(
            Real(name="clock", low=2e8, high=1.6e9, scale="log"),
            Ordinal(name="rows", values=(8, 16, 32)),
        )
    )
    (design,) = space.at(np.array([[0.4, 0.123456789]])).designs()
    near = [d for d in space.neighbours(design).designs() if d["rows"] != design["rows"]]
    assert {d["clock"] for d in near} == {design["clock"]}


def test_a_member_test_against_an_absent_parameter_is_unknown():
    rows = Batch.of([{"x": 1, "y": 1}, {"x": 0, "z": 3}])
    rule = parse("x in [y, 7]")
    assert rule.holds(rows.columns, 2, unknown=True).tolist() == [True, True]
    assert rule.holds(rows.columns, 2, unknown=False).tolist() == [True, False]
