"""The direction in which a formula goes with its parts is that which its values show."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Name
from dse.optimizers.exact.monotonicity import Trend, monotone_range, pair_folds, single_group_terms

RANGES = {"up": (1.0, 4.0), "down": (-3.0, -0.5), "wide": (-2.0, 2.0), "wider": (0.0, 5.0)}
PARTS = {Name(name): ends for name, ends in RANGES.items()}


@pytest.mark.parametrize(
    ("text", "name", "trend"),
    [
        ("up + wide", "up", Trend.RISES),
        ("up - wide", "wide", Trend.FALLS),
        ("-(up - wide)", "wide", Trend.RISES),
        ("up * wider", "up", Trend.RISES),
        ("down * up", "up", Trend.FALLS),
        ("wide * up", "wide", Trend.RISES),
        ("wide * up", "up", Trend.EITHER),
        ("up / wider", "up", Trend.EITHER),
        ("wider / up", "up", Trend.FALLS),
        ("wider / down", "wider", Trend.FALLS),
        ("down / up", "up", Trend.RISES),
        ("max(up, wide) - min(up, down)", "wide", Trend.RISES),
        ("max(up, wide) - min(up, down)", "down", Trend.FALLS),
        ("max(up, wide) - min(up, down)", "up", Trend.EITHER),
        ("up ** 2 + wide", "up", Trend.RISES),
        ("up ** -2", "up", Trend.FALLS),
        ("wide ** 2", "wide", Trend.EITHER),
        ("2 ** up", "up", Trend.EITHER),
        ("abs(down) + wide", "down", Trend.FALLS),
        ("abs(wide)", "wide", Trend.EITHER),
        ("sqrt(up) * log2(up)", "up", Trend.RISES),
        ("sqrt(wide)", "wide", Trend.EITHER),
        ("(up > 2) * wider", "wider", Trend.EITHER),
        ("up % 2", "up", Trend.EITHER),
        ("sum(up, wide, -wider)", "wider", Trend.FALLS),
        ("product(up, wider, up)", "wider", Trend.RISES),
        ("floor(wide) + ceil(up)", "wide", Trend.RISES),
    ],
)
def test_a_part_moves_a_formula_in_a_known_direction(text, name, trend):
    assert monotone_range(pair_folds(parse(text)), PARTS).trends[Name(name)] is trend


def test_nothing_is_told_of_what_may_be_no_finite_number():
    huge = {Name("up"): (1.0, 1e308), Name("wide"): (0.0, 1.0)}
    assert set(monotone_range(parse("up * up + wide").node, huge).trends.values()) == {Trend.EITHER}


leaves = st.sampled_from([*RANGES, "1", "0.3", "-2"])
formulas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "-", "sqrt", "round"]), inner),
    ),
    max_leaves=8,
)


@given(formulas, st.sampled_from(sorted(RANGES)), st.integers(0, 2**32))
def test_values_rise_and_fall_as_is_told_and_lie_between_the_ends(text, name, seed):
    expression = parse(text)
    told = monotone_range(pair_folds(expression), PARTS)
    rng = np.random.default_rng(seed)
    columns = {one: Column(np.full(50, rng.uniform(*ends))) for one, ends in RANGES.items()}
    columns[name] = Column(np.sort(rng.uniform(*RANGES[name], 50)))
    values = Expression("", pair_folds(expression)).values(columns, 50).values.astype(float)
    trend = told.trends.get(Name(name), Trend.NONE)
    assert trend is not Trend.RISES or (values[1:] >= values[:-1]).all()
    assert trend is not Trend.FALLS or (values[1:] <= values[:-1]).all()
    assert trend is not Trend.NONE or len(np.unique(values)) == 1
    assert math.isinf(told.low) or (told.low <= values).all()
    assert math.isinf(told.high) or (values <= told.high).all()


def test_a_folded_list_is_the_steps_of_two_that_compute_it():
    assert pair_folds(parse("sum(up, wide, down)")) == parse("up + wide + down").node


def test_the_terms_of_a_formula_are_as_large_as_their_group():
    groups = {"up": 0, "down": 0, "wide": 1, "wider": 1}
    terms = single_group_terms(parse("up * down + wide - max(wider, up)").node, groups)
    assert terms == [parse(text).node for text in ("up * down", "wide", "wider", "up")]
