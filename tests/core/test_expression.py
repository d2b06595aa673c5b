"""Formulas: parsed to a tree, never run; three-valued where a parameter is absent."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.expression import Number
from dse.core.parser import parse
from dse.errors import SpecError

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
    ],
)
def test_what_is_no_expression_is_refused_in_one_message(text):
    with pytest.raises(SpecError):
        parse(text)


def test_a_tower_of_powers_is_bounded():
    assert not np.isfinite(parse("9**9**9").values({}, 1).values).all()
