"""Printed formulas: each is parsed to the tree that it came from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.expressions.parser import parse
from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import (
    Absent,
    Binary,
    Call,
    Compare,
    Field,
    Index,
    Listed,
    Logic,
    Lookup,
    Member,
    Name,
    Number,
    Text,
    Truth,
    Unary,
)
from dse.errors import SpecError

NAMES = st.sampled_from(["tp", "chip.rows", "größe", "format"]).map(Name)
NUMBERS = st.builds(
    Number,
    st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "", "KiB", "mJ s", "TB/s", "kg m^2 s^-3", "$", "$/h"]),
)
TEXTS = st.text(st.characters(exclude_characters="'", codec="utf-8"), max_size=5).map(Text)
LEAVES = (
    NAMES | NUMBERS | TEXTS | st.booleans().map(Truth) | st.builds(Absent, NAMES, st.booleans())
)


INDICES = st.builds(Index, NAMES, NAMES | st.integers(0, 9).map(Number) | TEXTS)


def negative(node):
    return Unary("-", node) if not isinstance(node, Number) else node


def negated(node):
    return Unary("not", node)


def chain(nodes, operators):
    return Compare(tuple(operators[: len(nodes) - 1]), tuple(nodes))


def branches(nodes):
    several = st.lists(nodes, min_size=2, max_size=4)
    arithmetic = st.sampled_from(["+", "-", "*", "/", "//", "%", "**"])
    comparisons = st.lists(
        st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), min_size=3, max_size=3
    )
    return (
        st.builds(Binary, arithmetic, nodes, nodes)
        | st.builds(negative, nodes)
        | st.builds(negated, nodes)
        | st.builds(chain, several, comparisons)
        | st.builds(Logic, st.sampled_from(["and", "or"]), several.map(tuple))
        | st.builds(Logic, st.just("->"), st.tuples(nodes, nodes))
        | st.builds(Member, nodes, several.map(tuple), st.booleans())
        | st.builds(Call, st.sampled_from(["min", "max"]), several.map(tuple))
        | st.builds(Call, st.sampled_from(["abs", "log2", "ceil"]), st.tuples(nodes))
        | st.builds(Call, st.just("in"), st.tuples(nodes, NAMES))
        | INDICES
        | st.builds(Index, NAMES, nodes)
        | st.builds(Absent, INDICES, st.booleans())
        | st.builds(Field, INDICES, st.sampled_from(["memory", "power"]))
    )


TREES = st.recursive(LEAVES, branches, max_leaves=20)


@given(TREES)
def test_a_printed_formula_is_parsed_to_the_same_tree(tree):
    assert parse(format_node(tree)).node == tree


@pytest.mark.parametrize(
    "text",
    [
        "tp * pp * dp == gpus",
        "a - (b - c)",
        "a - b - c",
        "(a + b) * c",
        "(-2) ** 2",
        "-a ** 2",
        "2 ** -a",
        "a ** b ** c",
        "(a ** b) ** c",
        "not a < b and c",
        "(a -> b) -> c",
        "a -> b -> c",
        "(a or b) and c",
        "x not in ['it\"s', 'no'] or y is not absent",
        "1 < x <= 64 KiB",
        "max(a, b + 1) % 2 == 0",
    ],
)
def test_a_formula_is_printed_with_no_more_parentheses_than_it_needs(text):
    assert format_node(parse(text).node) == text


TOLD = {
    "bits[0] <= 8": Compare(("<=",), (Name("bits[0]"), Number(8))),
    "kept['conv1']": Name("kept[conv1]"),
    "1e+20": Number(10**20),
    "'in' + \"it's\"": Binary("+", Text("in"), Text("it's")),
    "devices[chip].memory": Lookup(Name("chip"), (("a", 1),), "B", "devices[chip].memory"),
    "table[chip + 1]": Lookup(Binary("+", Name("chip"), Number(1)), ((1, 1),)),
    "forbid [a, b] in 1 rows": Listed((Name("a"), Name("b")), ((1, 2),), negated=True),
    "a < b": Logic("and", (Compare(("<",), (Name("a"), Name("b"))),)),
}


@pytest.mark.parametrize("text", TOLD)
def test_what_is_not_written_by_users_is_told_in_words_of_theirs(text):
    assert format_node(TOLD[text]) == text


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (Text("'\""), "both kinds of quotes"),
        (Number(float("inf")), "no finite number"),
        (Number(10**30 + 1), "too many digits"),
    ],
)
def test_what_the_language_has_no_words_for_is_told(node, problem):
    with pytest.raises(SpecError, match=problem):
        format_node(node)
