"""Formulas: parsed to a tree, never run; three-valued where a parameter is absent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch, Column
from dse.core.expressions.list_rules import expand_lists
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Number, is_truth
from dse.errors import SpecError
from dse.units.dimensions import unit_of
from dse.units.units import factor

ROWS = Batch.of([{"a": 6, "b": 4.0, "c": "x"}, {"a": 7, "b": 0.0, "c": "y", "d": 2}])


def value(text):
    return parse(text).values(ROWS.columns, len(ROWS)).values.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 2 * 3", [12, 13]),
        ("-a ** 2", [-36, -49]),
        ("2 ** 3 ** 2", [512, 512]),
        ("a // 4 + a % 4", [3, 4]),
        ("10 / 4", [2.5, 2.5]),
        ("1 < a <= 6", [True, False]),
        ("a == 6 or c == 'y'", [True, True]),
        ("a == 6 -> c == 'y'", [False, True]),
        ("not a == 6 and true", [False, True]),
        ("c in ['x', 'z']", [True, False]),
        ("c not in ['x', 'z']", [False, True]),
        ("min(a, 6.5) + max(a, 6.5)", [12.5, 13.5]),
        ("is_pow2(b)", [True, False]),
        ("log2(8) + ceil(1.2) + floor(1.8) + abs(-1)", [7.0, 7.0]),
        ("d is absent", [True, False]),
        ("d is not absent", [False, True]),
        ("sum(a, b, 1) - product(a, 2)", [-1.0, -6.0]),
        ("round(a / 4)", [2.0, 2.0]),
        ("all_different(a, 6, b)", [False, True]),
        ("all_different(c, 'y')", [True, False]),
    ],
)
def test_an_expression_has_its_value(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "unknown_is_true", "unknown_is_false"),
    [
        ("d > 1", [True, True], [False, True]),
        ("d > 1 and a == 0", [False, False], [False, False]),
        ("d > 1 or a == 6", [True, True], [True, True]),
        ("not d > 1", [True, False], [False, False]),
        ("d > 1 -> a == 7", [True, True], [False, True]),
    ],
)
def test_an_absent_parameter_makes_the_answer_unknown_unless_the_rest_decides(
    text, unknown_is_true, unknown_is_false
):
    rule = parse(text)
    assert rule.holds(ROWS.columns, 2, unknown=True).tolist() == unknown_is_true
    assert rule.holds(ROWS.columns, 2, unknown=False).tolist() == unknown_is_false


def test_a_division_by_zero_holds_no_rule():
    assert parse("a // b >= 0").holds(ROWS.columns, 2, unknown=True).tolist() == [True, True]
    assert parse("a % b <= 6").holds(ROWS.columns, 2, unknown=True).tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("64 KiB", Number(64, "KiB")),
        ("1.5e3 mJ s", Number(1500.0, "mJ s")),
        ("3.35 TB/s", Number(3.35, "TB/s")),
        ("4 $/h", Number(4, "$/h")),
        ("20 mm2", Number(20, "mm2")),
        ("-3 K", Number(-3, "K")),
    ],
)
def test_a_number_carries_its_unit(text, number):
    assert parse(text).node == number


def test_a_slash_with_spaces_divides():
    assert parse("20 ms / tp").names == {"tp"}


def test_a_word_of_the_language_ends_a_unit():
    assert parse("a <= 20 mm2 and b < 3").names == {"a", "b"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "(1",
        "a b",
        "a ? b",
        "foo(1)",
        "min(1)",
        "1 < 'x",
        "a is",
        "5 is absent",
        "a in 3",
        "a = 3",
        "__import__('os')",
        "a.b.",
        "(" * 200,
        "9" * 40,
        "1" + "+1" * 4000,
        "1" + "+1" * 300,
        "a" + "[0]" * 300,
        "x[" * 100 + "0" + "]" * 100,
        "2**" * 100 + "2",
        "a[",
        "a[]",
        "a[0",
        "a[0].",
        "a[0].5",
        "a[0, 1]",
        "3[0]",
        "a in",
        "a in b in c",
        "in(a, b)",
        "count()",
        "count(a, b, c)",
        "len(a, b)",
        "sum(1)",
        "all(true)",
        "1e999",
        "9" * 400 + ".5",
    ],
)
def test_what_is_no_expression_is_refused_in_one_message(text):
    with pytest.raises(SpecError):
        parse(text)


def test_a_tower_of_powers_is_bounded():
    assert not np.isfinite(parse("9**9**9").values({}, 1).values).all()
    assert parse("9**9**9 > 9**9").values({}, 1).values.all()


def test_a_mistake_is_shown_with_a_mark_under_its_place():
    with pytest.raises(SpecError) as error:
        parse("a <= 4 and b >")
    assert error.value.hint == "a <= 4 and b >\n        " + " " * 14 + "^"


def test_a_mistake_in_a_long_text_is_shown_with_what_stands_around_it():
    with pytest.raises(SpecError) as error:
        parse("a + " * 100 + "+ ? " + "+ a" * 100)
    shown, mark = error.value.hint.splitlines()
    assert len(shown) == 100
    assert shown[len(mark) - 1 - 8] == "?"


def test_an_unknown_function_is_told_with_the_nearest_one():
    with pytest.raises(SpecError, match="did you mean 'count'"):
        parse("counts(a == 4)")


@pytest.mark.parametrize(
    ("text", "factor", "value"),
    [
        ("70 percent", 0.01, 0.7),
        ("0.07 GB", 1e9, 70_000_000),
        ("64 KiB", 1024.0, 65_536),
        ("1 PiB", 2.0**50, 2**50),
        ("0.1234567890123456 s", 1.0, 0.1234567890123456),
    ],
)
def test_a_unit_is_folded_into_its_number_without_dust(text, factor, value):
    node = parse(text).resolve_units(lambda unit: factor).node
    assert node == Number(value)
    assert type(node.value) is type(value)


def test_a_unit_that_makes_a_number_too_large_is_refused():
    with pytest.raises(SpecError, match="too large"):
        parse("1e308 TB").resolve_units(lambda unit: 1e12)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("a == 1", True),
        ("not a", True),
        ("a", True),
        ("a in bits", True),
        ("all(bits)", True),
        ("all_different(a, b)", True),
        ("is_pow2(a)", True),
        ("a is absent", True),
        ("-a", False),
        ("a + 1", False),
        ("count(bits)", False),
        ("'x'", False),
    ],
)
def test_a_formula_tells_whether_it_may_be_a_truth(text, truth):
    assert is_truth(parse(text).node) == truth


NUMBERS = st.recursive(
    st.sampled_from(["a", "b", "c", "2", "3"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join),
        inner.map(lambda text: f"-{text}"),
        inner.map(lambda text: f"({text})"),
    ),
    max_leaves=8,
)
TRUTHS = st.recursive(
    st.tuples(NUMBERS, st.sampled_from(["<", "<=", "==", "!="]), NUMBERS).map(" ".join),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda text: f"not {text}"),
    ),
    max_leaves=4,
)


@given(text=TRUTHS, a=st.integers(-9, 9), b=st.integers(-9, 9), c=st.integers(-9, 9))
def test_operators_bind_as_in_python(text, a, b, c):
    names = {"a": a, "b": b, "c": c}
    columns = {name: Column.of([value]) for name, value in names.items()}
    assert parse(text).values(columns, 1).values[0] == eval(text, {}, names)


WORDS = [*"abcd12+-*/%<()[],.", "2.5", "'x'", "true", "//", "**", "<=", "==", "!=", "and", "or"]
WORDS += ["not", "in", "is", "absent", "->", "sum(", "count(", "all(", "max(", "len(", "round("]
WORDS += ["is_pow2(", "KiB", "ms", "%", "a[0]", "a[b].c"]


@given(words=st.lists(st.sampled_from(WORDS), max_size=14))
def test_whatever_is_written_has_a_value_or_is_refused(words):
    try:
        rule = expand_lists(parse(" ".join(words)), {}, {})
        unit_of(rule, {"c": "text"})
    except SpecError:
        return
    columns = {name: ROWS.columns.get(name, Column.of([1, None])) for name in rule.names}
    rule.resolve_units(factor).values(columns, len(ROWS))
