"""What makes two spaces the same, and what is told where they are not."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Compare, Listed, Lookup, Name, Number
from dse.core.inspection.diff import difference
from dse.core.inspection.fingerprint import fingerprint, outline
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files
from dse.testing.strategies import spaces

PLAN = DesignSpace(
    parameters=(
        Ordinal(name="tp", values=(1, 2, 4, 8)),
        Integer(name="pp", low=1, high=9, step=2),
        Real(name="clock", low=2e8, high=1.6e9, unit="Hz", scale="log"),
        Choice(name="format", values=("int8", "mxfp4")),
        Ordinal(name="buffer", values=(65536, 131072), unit="B"),
    ),
    conditions={"buffer": parse("format == 'int8'")},
    constraints=(parse("tp * pp <= 16"), parse("tp < 8 or format == 'mxfp4'")),
)


def changed(name: str, **fields: object) -> DesignSpace:
    """The plan with other fields of one parameter."""
    parameters = tuple(replace(p, **fields) if p.name == name else p for p in PLAN.parameters)
    return replace(PLAN, parameters=parameters)


def ruled(*rules: str) -> DesignSpace:
    return replace(PLAN, constraints=tuple(parse(rule) for rule in rules))


def from_file(folder: Path, text: str) -> DesignSpace:
    path = folder / f"space{len(list(folder.iterdir()))}.yaml"
    path.write_text(text)
    return space_of(path, Files())


SAME = {
    "the order of parameters": replace(PLAN, parameters=PLAN.parameters[::-1]),
    "the order of rules": replace(PLAN, constraints=PLAN.constraints[::-1]),
    "a rule said twice": replace(PLAN, constraints=PLAN.constraints * 2),
    "spaces and parentheses": ruled("(tp*pp)<=16", "((tp <  8) or ( format=='mxfp4' ))"),
    "the side of a comparison": ruled("16 >= tp * pp", "'mxfp4' == format or 8 > tp"),
    "a whole number as a decimal": changed("tp", values=(1.0, 2.0, 4.0, 8.0)),
    "the order of a choice": changed("format", values=("mxfp4", "int8")),
    "where it stands": replace(PLAN, places={"tp": "plan.yaml:3"}),
}


@pytest.mark.parametrize("case", SAME)
def test_the_layout_of_a_space_does_not_change_its_fingerprint(case):
    assert fingerprint(SAME[case]) == fingerprint(PLAN)
    assert difference(PLAN, SAME[case]) == []


DIFFERENT = {
    "tp is wider: it may also be 16": changed("tp", values=(1, 2, 4, 8, 16)),
    "tp is narrower: it can no longer be 1, 8": changed("tp", values=(2, 4)),
    "tp has another order: 8, 4, 2, 1; it was 1, 2, 4, 8": changed("tp", values=(8, 4, 2, 1)),
    "pp is wider: it was 1 .. 9 in steps of 2, now it is 1 .. 9": changed("pp", step=1),
    "pp is changed: it was 1 .. 9 in steps of 2, now it is 0 .. 8 in steps of 2": changed(
        "pp", low=0, high=8
    ),
    "pp is narrower: it was 1 .. 9 in steps of 2, now it is 3 .. 7 in steps of 2": changed(
        "pp", low=3, high=7
    ),
    "clock is wider: it was 200000000 Hz .. 1600000000 Hz, now it is 0.5 Hz .. 1600000000 Hz": (
        changed("clock", low=0.5)
    ),
    "clock has a linear scale now; it was log": changed("clock", scale="linear"),
    "buffer was one of a list of numbers in B: 65536 B, 131072 B; "
    "now it is one of a list of numbers: 65536, 131072": changed("buffer", unit=""),
    "the rule 'tp * pp <= 16' is gone": ruled("tp < 8 or format == 'mxfp4'"),
    "buffer always exists now; it did only when \"format == 'int8'\"": replace(PLAN, conditions={}),
    "buffer exists when 'tp > 1' now; it did when \"format == 'int8'\"": replace(
        PLAN, conditions={"buffer": parse("tp > 1")}
    ),
    "format is gone; it was int8, mxfp4": DesignSpace(
        parameters=tuple(p for p in PLAN.parameters if p.name != "format"),
        conditions=PLAN.conditions,
        constraints=PLAN.constraints,
    ),
}


@pytest.mark.parametrize("sentence", DIFFERENT)
def test_a_change_is_told_with_its_values_and_changes_the_fingerprint(sentence):
    assert fingerprint(DIFFERENT[sentence]) != fingerprint(PLAN)
    assert difference(PLAN, DIFFERENT[sentence]) == [sentence]


def test_a_rule_that_became_another_is_told_as_gone_and_new():
    told = difference(PLAN, ruled("tp * pp <= 32", "tp < 8 or format == 'mxfp4'"))
    assert told == ["the rule 'tp * pp <= 16' is gone", "the rule 'tp * pp <= 32' is new"]


def test_what_is_added_is_told_with_its_domain():
    more = replace(PLAN, parameters=(*PLAN.parameters, Integer(name="ep", low=1, high=4)))
    assert difference(PLAN, more) == ["ep is new: 1 .. 4"]
    assert difference(more, PLAN) == ["ep is gone; it was 1 .. 4"]


def test_a_long_list_is_told_by_its_ends():
    told = difference(PLAN, changed("tp", values=tuple(range(1, 30))))
    assert told == ["tp is wider: it may also be 3, 5, 6, ..., 29"]


def test_a_change_of_a_whole_list_is_told_once():
    old, new = (
        DesignSpace(parameters=tuple(Ordinal(name=f"bits[{i}]", values=v) for i in range(12)))
        for v in ((2, 4, 8), (2, 4))
    )
    told = difference(old, new)
    assert told == ["each of bits[0] to bits[11] is narrower: it can no longer be 8"]


def test_a_table_is_the_same_however_its_rows_and_columns_are_arranged():
    one = Listed((Name("tp"), Name("format")), ((1, "int8"), (2.0, "mxfp4")))
    other = Listed((Name("format"), Name("tp")), (("mxfp4", 2), ("int8", 1)))
    fewer = Listed((Name("tp"), Name("format")), ((1, "int8"),))
    spaces = [replace(PLAN, constraints=(Expression("t", table),)) for table in (one, other, fewer)]
    assert fingerprint(spaces[0]) == fingerprint(spaces[1]) != fingerprint(spaces[2])


def test_other_data_behind_the_same_words_is_told():
    lookups = [Lookup(Name("tp"), ((1, n), (2, 20)), "", "cost[tp]") for n in (10, 30)]
    nodes = [Compare(("<=",), (lookup, Number(15))) for lookup in lookups]
    old, new = (replace(PLAN, constraints=(Expression("cost[tp] <= 15", n),)) for n in nodes)
    assert difference(old, new) == [
        "the rule 'cost[tp] <= 15' means something else now, because the definitions of its names "
        "changed"
    ]


def test_formulas_of_every_kind_have_a_form():
    rules = (
        "not (tp > 2)",
        "-tp < 2",
        "tp in [1, 2]",
        "tp in [2, 1]",
        "buffer is absent",
        "buffer is not absent",
        "max(tp, pp) < 8",
        "bits[tp] < 2",
        "devices[tp].memory < 2",
        "true",
        "tp <= 64 KiB",
        "tp <= -2",
    )
    prints = [fingerprint(ruled(rule)) for rule in rules]
    assert len(set(prints)) == len(rules) - 1
    assert prints[2] == prints[3]


def test_words_that_a_choice_never_is_make_no_difference():
    told = ["format not in ['mxfp4', 'fp8'] or tp < 8", "format != 'mxfp4' or tp < 8"]
    assert fingerprint(ruled(told[0])) == fingerprint(ruled(told[1]))
    assert fingerprint(ruled("format == 'fp8' -> tp < 8")) == fingerprint(
        ruled("format not in ['int8', 'mxfp4'] -> tp < 8")
    )
    assert fingerprint(ruled("'fp8' != format")) == fingerprint(
        ruled("format in ['int8', 'mxfp4']")
    )


def test_truth_and_one_are_two_values():
    old, new = (DesignSpace(parameters=(Choice(name="x", values=(v, 5)),)) for v in (True, 1))
    assert fingerprint(old) != fingerprint(new)
    assert difference(old, new) == [
        "x is wider: it may also be 1",
        "x is narrower: it can no longer be True",
    ]


def test_a_unit_may_be_spelled_in_any_way(tmp_path):
    one = "space: a\nparameters:\n  x: {ordinal: [64 KiB, 128 KiB]}\nconstraints: [x <= 64 KiB]\n"
    other = (
        "space: b\nconstraints: ['(x<=65536 B)']\nparameters:\n  x: {ordinal: [65536 B, 128 KiB]}\n"
    )
    assert fingerprint(from_file(tmp_path, one)) == fingerprint(from_file(tmp_path, other))


def test_numbers_are_shown_as_the_caller_shows_them():
    told = difference(PLAN, changed("buffer", values=(65536,)), lambda v, unit: f"<{v:.0f} {unit}>")
    assert told == ["buffer is narrower: it can no longer be <131072 B>"]


def test_an_outline_that_a_record_kept_stands_for_its_space():
    kept = outline(PLAN)
    assert fingerprint(kept) == fingerprint(PLAN)
    assert difference(kept, changed("tp", values=(1, 2, 4))) == [
        "tp is narrower: it can no longer be 8"
    ]


@given(spaces(), st.randoms(use_true_random=False))
def test_shuffling_a_space_keeps_its_fingerprint(space, random):
    parameters, rules = list(space.parameters), list(space.constraints)
    random.shuffle(parameters)
    random.shuffle(rules)
    other = replace(space, parameters=tuple(parameters), constraints=tuple(rules))
    assert fingerprint(other) == fingerprint(space)


@settings(max_examples=40)
@given(spaces(), spaces())
def test_two_spaces_have_one_fingerprint_where_nothing_is_told(one, other):
    assert (difference(one, other) == []) == (fingerprint(one) == fingerprint(other))
