"""Budgets of a study file, in words and in numbers."""

from pathlib import Path

import pytest

from dse.errors import SpecError, SpecErrors
from dse.schema.models import BudgetSpec
from dse.schema.study.budget import Budget, budget_of, change_budget
from dse.schema.study.plan import plan_of

SPACE = "space: s\nparameters:\n  rows: {ordinal: [8, 16]}\n"
STUDY = """
study: s
space: space.yaml
evaluators:
  board: {use: command, run: ['true'], metrics: {power: mW, speed: ''}}
objectives: [{minimize: board.power}, {maximize: board.speed}]
"""


def budget_from(folder: Path, text: str) -> Budget:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(STUDY + text)
    return plan_of(folder / "study.yaml").budget


def test_a_budget_is_told_in_any_unit_and_kept_in_seconds_and_dollars(tmp_path):
    text = "budget: {time: 2 h, cost: 20 $, price: 3.6 $/h, min_improvement: 0.1 %}\n"
    budget = budget_from(tmp_path, text)
    assert budget == Budget(
        time_s=7200, cost=20, price_per_s=pytest.approx(0.001), min_improvement=0.001
    )


def test_bare_numbers_are_dollars_dollars_an_hour_and_a_share():
    budget = budget_of(BudgetSpec(cost=20, price=3.6, min_improvement=0.01))
    assert (budget.cost, budget.min_improvement) == (20, 0.01)
    assert budget.price_per_s == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("{cost: 20 $}", "a budget of cost needs a price"),
        ("{cost: 4 $/h, price: 4 $/h}", "'4 $/h' is no cost"),
        ("{cost: 20 $, price: 4 $}", "'4 $' is no price"),
        ("{cost: 0, price: 4}", "a budget's cost is above zero"),
        ("{time: 5 mm}", "'5 mm' is no time"),
        ("{min_improvement: 200 %}", "an improvement of 200 % is never reached"),
        ("{min_improvement: 1 s}", "'1 s' is no min_improvement"),
    ],
)
def test_a_mistake_in_a_budget_is_told_with_its_line(tmp_path, budget, told):
    with pytest.raises((SpecError, SpecErrors)) as caught:
        budget_from(tmp_path, f"budget: {budget}\n")
    assert told in str(caught.value)
    assert "study.yaml:7" in str(caught.value)


def test_an_optimizer_that_tells_no_gain_is_not_stopped_by_it(tmp_path):
    with pytest.raises(SpecErrors, match="'random' does not report an expected improvement"):
        budget_from(tmp_path, "optimizer: random\nbudget: {min_improvement: 1 %}\n")


def test_the_command_states_another_cost_at_the_price_of_the_file():
    stated = Budget(measurements=5, cost=20.0, price_per_s=0.001)
    budget = change_budget(stated, BudgetSpec(cost="30 $"))
    assert (budget.cost, budget.measurements) == (30, 5)
    assert budget.price_per_s == pytest.approx(0.001)


def test_the_command_cannot_state_a_cost_without_a_price():
    with pytest.raises(SpecError, match="needs a price"):
        change_budget(Budget(), BudgetSpec(cost="30 $"))
