"""Objectives that are shown by a name of their own."""

import pytest

from dse.errors import DseError
from dse.report.words import reference_text
from dse.schema.study.plan import plan_of

STUDY = """
study: named
space: x.yaml
evaluators:
  chip: {{use: expression, metrics: {{time: {{formula: x * 1 s, unit: s}}, area: {{formula: 1 mm2 / x, unit: mm2}}}}}}
objectives:
  - {{minimize: chip.time * chip.area, label: burden}}
  - {{minimize: chip.area, label: {second}}}
reference: {{burden: 2 s mm2, chip.area: 1 mm2}}
"""


def study(tmp_path, second="size"):
    (tmp_path / "x.yaml").write_text("space: line\nparameters: {x: {integer: [1, 9]}}\n")
    path = tmp_path / "named.yaml"
    path.write_text(STUDY.format(second=second))
    return plan_of(path)


def test_an_objective_is_shown_by_its_name_and_told_apart_by_its_formula(tmp_path):
    first, second = study(tmp_path).problem.objectives
    assert (first.name, first.text) == ("burden", "chip.time * chip.area")
    assert (second.name, second.text) == ("size", "chip.area")


def test_a_reference_point_may_use_the_name_or_the_formula(tmp_path):
    problem = study(tmp_path).problem
    words = reference_text(problem.objectives, problem.fixed_reference)
    assert words.startswith("burden 2")
    assert "size 1 mm2" in words


@pytest.mark.parametrize("taken", ["burden", "chip.time", "x"])
def test_a_name_that_something_has_is_refused(tmp_path, taken):
    with pytest.raises(DseError, match="already the name of"):
        study(tmp_path, second=taken)
