"""Formulas over lists have the values that Python gives the same formula over its lists."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Column
from dse.core.expressions.list_rules import Listing, Table, expand_lists
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Name

ROW = st.lists(st.integers(-9, 9), min_size=4, max_size=4)

NUMBERS = st.recursive(
    st.one_of(
        st.sampled_from(["xs", "ys"]).map(lambda name: (name, lambda env: env[name])),
        st.integers(-9, 9).map(lambda n: (f"({n})", lambda env: n)),
    ),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner).map(
        lambda made: (
            f"({made[1][0]} {made[0]} {made[2][0]})",
            lambda env: _each(_PYTHON[made[0]], made[1][1](env), made[2][1](env)),
        )
    ),
    max_leaves=6,
)
_PYTHON = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_PYTHON |= {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne}


def _each(function, left, right):
    """The function of two numbers or lists, item by item."""
    if not isinstance(left, list) and not isinstance(right, list):
        return function(left, right)
    lefts = left if isinstance(left, list) else [left] * 4
    rights = right if isinstance(right, list) else [right] * 4
    return [function(a, b) for a, b in zip(lefts, rights, strict=True)]


def _compared(made):
    mark, left, right = made
    text = f"{left[0]} {mark} {right[0]} + xs - xs"  # a list in any case
    return text, lambda env: _each(_PYTHON[mark], left[1](env), _listed(right[1](env)))


def _listed(found):
    return found if isinstance(found, list) else [found] * 4


TRUTHS = st.tuples(st.sampled_from(["<", "<=", "==", "!="]), NUMBERS, NUMBERS).map(_compared)
FOLDS = {"sum": sum, "max": max, "min": min, "product": lambda xs: int(np.prod(xs, dtype=object))}


@given(inner=NUMBERS, function=st.sampled_from(sorted(FOLDS)), xs=ROW, ys=ROW)
def test_a_fold_of_a_list_is_what_python_makes_of_it(inner, function, xs, ys):
    text = f"{function}({inner[0]} + 0 * xs)"
    assert _evaluated(text, xs, ys) == FOLDS[function](_listed(inner[1]({"xs": xs, "ys": ys})))


@given(inner=TRUTHS, xs=ROW, ys=ROW)
def test_counts_all_and_any_are_what_python_makes_of_them(inner, xs, ys):
    truths = inner[1]({"xs": xs, "ys": ys})
    assert _evaluated(f"count({inner[0]})", xs, ys) == sum(truths)
    assert _evaluated(f"all({inner[0]})", xs, ys) == all(truths)
    assert _evaluated(f"any({inner[0]})", xs, ys) == any(truths)


@given(item=st.integers(-9, 9), xs=ROW, ys=ROW)
def test_membership_and_difference_are_what_python_makes_of_them(item, xs, ys):
    assert _evaluated(f"{item} in xs", xs, ys) == (item in xs)
    assert _evaluated(f"{item} not in ys", xs, ys) == (item not in ys)
    assert _evaluated("all_different(xs)", xs, ys) == (len(set(xs)) == 4)
    assert _evaluated("sum(ys[0], xs[-1])", xs, ys) == ys[0] + xs[-1]


def _evaluated(text, xs, ys):
    """The value of a formula over a list of parameters, xs, and a column of data, ys."""
    nodes = tuple(Name(f"xs[{place}]") for place in range(4))
    lists = {"xs": Listing(keys=(0, 1, 2, 3), nodes=nodes)}
    table = Table(keys=(0, 1, 2, 3), columns={"ys": tuple(ys)})
    rule = expand_lists(parse(text.replace("ys", "data.ys")), lists, {"data": table})
    columns = {f"xs[{place}]": Column.of([x]) for place, x in enumerate(xs)}
    return rule.values(columns, 1).values[0]


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3))
def test_a_sum_is_rounded_as_the_sum_written_out(values):
    columns = {name: Column.of([one]) for name, one in zip("abc", values, strict=True)}
    told = parse("sum(a, b, c)").values(columns, 1).values[0]
    assert told == parse("a + b + c").values(columns, 1).values[0]


@pytest.mark.parametrize("number", [2**53 - 3, 10**9, 3])
def test_a_sum_of_whole_numbers_is_exact(number):
    columns = {"a": Column.of([number]), "b": Column.of([2])}
    assert parse("sum(a, b)").values(columns, 1).values.tolist() == [number + 2]


def test_a_sum_past_the_whole_numbers_goes_on_as_a_float():
    columns = {"a": Column.of([2**61]), "b": Column.of([2**61])}
    assert parse("sum(a, b, a, b)").values(columns, 1).values.tolist() == [2.0**63]
    assert parse("product(a, b)").values(columns, 1).values.tolist() == [2.0**122]
