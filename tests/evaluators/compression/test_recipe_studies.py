"""Studies with recipes: what `dse check` tells of them before anything is run."""

from __future__ import annotations

import pytest

from dse.errors import SpecErrors
from dse.schema.study.plan import plan_of

SPACE = """\
space: layers
parameters:
  bits: {{each: {count}, choice: [{formats}]}}
  share: {{ordinal: [0.25, 0.5]}}
  signal: {{choice: [keep, {signal}]}}
"""
STUDY = """\
study: layers
question: Which bits for which layer?
space: layers.yaml
evaluators:
  quality:
    use: compression.recipe
    model: digits-cnn
    recipe: "prune {share} > format {bits}"
    activations: "{signal}"
  known: {use: compression.size, model: digits-cnn, recipe: "prune {share} > format {bits}"}
objectives:
  - minimize: quality.loss
  - minimize: known.bits_per_weight
budget: {measurements: 10}
"""


@pytest.fixture
def plan(tmp_path):
    def made(study=STUDY, count=5, formats="int4, 'int8:channel'", signal="int8"):
        text = SPACE.format(count=count, formats=formats, signal=signal)
        (tmp_path / "layers.yaml").write_text(text)
        (tmp_path / "study.yaml").write_text(study)
        return plan_of(tmp_path / "study.yaml")

    return made


@pytest.fixture
def told(plan):
    def mistakes(**changes):
        with pytest.raises(SpecErrors) as error:
            plan(**changes)
        return str(error.value)

    return mistakes


def test_a_list_is_read_member_by_member(plan):
    quality = next(one for one in plan().pipeline.bound if one.name == "quality")
    assert quality.reads == {"share", "signal", *(f"bits[{place}]" for place in range(5))}


def test_the_size_is_known_before_a_measurement(plan):
    assert plan().problem.measured == {"quality.loss"}


def test_a_list_of_the_wrong_length_is_told_with_its_line(told):
    answer = told(count=4)
    assert "study.yaml:5: 'bits' has 4 entries" in answer
    assert "one for each of conv1.weight, conv2.weight" in answer


def test_a_format_of_the_space_that_there_is_not_is_told_with_the_nearest(told):
    answer = told(formats="int4, itn8")
    assert "study.yaml:5: 'prune 0.25 > format itn8' is no recipe" in answer
    assert "did you mean 'int8:channel'?" in answer


def test_a_format_of_signals_that_there_is_not_is_told_with_the_nearest(told):
    assert "did you mean 'int8:channel'?" in told(signal="itn8")


@pytest.mark.parametrize(
    ("was", "slip", "hint"),
    [
        ("prune {share}", "prnue {share}", "did you mean 'prune'?"),
        ("format {bits}", "format {bit}", "needs 'bit', which the space does not have"),
        ("model: digits-cnn", "model: digit-cnn", "did you mean 'digits-cnn'?"),
        (
            '"{signal}"',
            '"{signal}"\n    layers: {"cov1*": keep}',
            "valid: conv1.weight, conv2.weight",
        ),
        ('"{signal}"', '"{bits}"', "'bits' is a list, but activations have one format"),
    ],
)
def test_a_slip_in_the_study_is_told_with_its_line_and_the_nearest_name(told, was, slip, hint):
    answer = told(study=STUDY.replace(was, slip))
    assert "study.yaml:5" in answer
    assert hint in answer


def test_an_option_that_there_is_not_is_told_with_its_own_line(told):
    answer = told(study=STUDY.replace('"{signal}"', '"{signal}"\n    splt: test'))
    assert "study.yaml:10: the evaluator 'compression.recipe' has no option 'splt'" in answer
    assert "did you mean 'split'?" in answer


def test_a_value_that_a_scenario_fixes_is_judged_too(told):
    study = STUDY.replace('"{signal}"', '"{other}"')
    study += "scenarios:\n  small: {values: {other: itn8}}\n"
    assert "there is no number format 'itn8'" in told(study=study)
