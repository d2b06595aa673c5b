"""Texts with braces, and which layers they are for."""

from __future__ import annotations

import pytest

from dse.errors import EvaluationError, SpecError
from dse_evaluators.compression.layer_recipes import check_recipe, parts_of
from dse_evaluators.compression.template import Template

LAYERS = ("embed.weight", "block0.weight", "block1.weight", "head.weight")


def told(error):
    return f"{error.value.problem} / {error.value.hint}"


def test_names_in_braces_are_what_is_read_once_each():
    assert Template.of("corrected {rank}/{ bits } > {rank}").names == ("rank", "bits")


@pytest.mark.parametrize(
    ("value", "text"), [(4, "prune 4"), (0.25, "prune 0.25"), (2.0, "prune 2")]
)
def test_a_value_is_put_in_as_a_recipe_has_it(value, text):
    assert Template.of("prune {x}").fill({"x": value}, 0) == text


def test_of_a_list_each_place_gets_its_member():
    design = {"x[0]": "int4", "x[1]": "int8"}
    assert Template.of("format {x}").fill(design, 1) == "format int8"


def test_a_design_without_the_value_is_told_so():
    with pytest.raises(EvaluationError, match="no value for 'x' at place 1"):
        Template.of("format {x}").fill({"x[0]": "int4"}, 1)


@pytest.mark.parametrize("text", ["format {", "format }x{", "format {}", "format {a b}", "{{x}}"])
def test_braces_without_a_name_are_refused(text):
    with pytest.raises(SpecError, match="braces hold no name"):
        Template.of(text)


def test_all_texts_that_values_make_are_looked_at():
    found = Template.of("svd {r}/{f}").fillings({"r": (1, 2), "f": ("fp16", "int8")}, 0)
    assert list(found) == ["svd 1/fp16", "svd 1/int8", "svd 2/fp16", "svd 2/int8"]


def test_a_reading_that_is_not_known_before_the_run_is_not_judged():
    assert list(Template.of("svd {r}/{f}").fillings({"r": (1, 2)}, 0)) == []


def test_the_first_pattern_that_matches_a_layer_counts():
    parts = parts_of(LAYERS, "keep", {"block0*": "format int8", "block*": "format int4"})
    assert [part.layers for part in parts] == [
        ("block0.weight",),
        ("block1.weight",),
        ("embed.weight", "head.weight"),
    ]


def test_a_pattern_that_matches_nothing_is_answered_with_the_nearest_layer():
    with pytest.raises(SpecError) as error:
        parts_of(LAYERS, "keep", {"embd.weight": "format int8"})
    assert told(error) == (
        "no layer is left that matches 'embd.weight' / did you mean 'embed.weight'?"
    )


def test_a_pattern_whose_layers_are_all_taken_is_refused():
    with pytest.raises(SpecError, match="no layer is left that matches 'block0"):
        parts_of(LAYERS, "keep", {"block*": "keep", "block0*": "format int8"})


def test_a_list_that_is_too_short_is_told_the_layers_that_it_is_for():
    rest = parts_of(LAYERS, "format {x}", {"embed*": "keep"})[-1]
    with pytest.raises(SpecError) as error:
        rest.check({"x[0]": ("int4",), "x[1]": ("int4",)})
    assert told(error) == (
        "'x' has 2 entries, but 'format {x}' is for 3 layers"
        " / one for each of block0.weight, block1.weight, head.weight"
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("format int44", "int16"),
        ("format mx:f2m3", "e2m1"),
        ("formt int4", "format"),
        ("prune 0.5 > hufman int4", "huffman"),
        ("huffman int4 > prune 0.5", "prune"),
        ("prune half > format int4", "0 to 1"),
        ("prune 1.5 > format int4", "0 to 1"),
        ("prune -1 > format int4", "0 to 1"),
        ("prune nan > format int4", "0 to 1"),
        ("blocks 2/4x4 > format int4", "0 to 1"),
        ("gptq int4:goup=32", "group"),
        ("kep", "keep"),
        ("", "format"),
    ],
)
def test_a_text_that_is_no_recipe_is_answered_with_the_nearest_that_is(text, hint):
    with pytest.raises(SpecError, match="is no recipe") as error:
        check_recipe(text)
    assert hint in error.value.hint


@pytest.mark.parametrize(
    "text",
    ["keep", "format int4:group=32,tail=short", "svd 5000/fp16", "format int4:group=48"],
)
def test_what_depends_on_the_layer_is_not_judged_before_the_run(text):
    check_recipe(text)
