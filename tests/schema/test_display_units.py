"""Units of objectives for display, and metrics that an evaluator explains as absent."""

import pytest

from dse.errors import DseError
from dse.report.words import number_text
from dse.schema.study.plan import plan_of
from dse.units.units import shown

STUDY = """
study: shown
space: x.yaml
evaluators:
  plan: {{use: clusters.training, model: gpt2, system: {system}, global_batch: 64, tokens: 1e9}}
objectives:
  - {{{objective}}}
"""
SPACE = "space: x\nparameters: {dp: [1, 2], tp: [1], pp: [1], microbatch: [1]}\n".replace(
    "[1, 2]", "{ordinal: [1, 2]}"
).replace("[1]", "{ordinal: [1]}")


def plan(tmp_path, objective, system="h100-hgx"):
    (tmp_path / "x.yaml").write_text(SPACE)
    path = tmp_path / "shown.yaml"
    path.write_text(STUDY.format(system=system, objective=objective))
    return plan_of(path)


def test_an_objective_is_shown_in_the_unit_that_it_asks_for(tmp_path):
    found = plan(tmp_path, "minimize: plan.time_to_train, display: days")
    (objective,) = found.problem.objectives
    assert number_text(172_800.0, objective.unit, written=objective.written) == "2 days"


def test_a_unit_of_another_dimension_cannot_be_displayed(tmp_path):
    with pytest.raises(DseError, match="cannot be shown in GiB"):
        plan(tmp_path, "minimize: plan.time_to_train, display: GiB")


def test_a_cost_without_a_price_names_the_system(tmp_path):
    with pytest.raises(DseError, match="no price is known for mi325x-platform"):
        plan(tmp_path, "minimize: plan.cost_to_train", "mi325x-platform")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (28_679.4, "USD", "28,679 $"),
        (2.5e7, "USD", "25 M$"),
        (3e-6, "USD", "3e-06 $"),
        (1234.5, "day", "1,234 day"),
    ],
)
def test_dollars_and_days_have_no_odd_prefixes(value, unit, text):
    assert shown(value, unit) == text
