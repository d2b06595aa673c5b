"""What is said for one run in place of what the study says."""

from __future__ import annotations

import pytest

from dse.errors import SpecError
from dse.schema.study.overrides import stated_budget, stated_executor
from dse.schema.study.plan import Plan, plan_of

SPACE = "space: s\nparameters:\n  x: {ordinal: [1, 2, 4]}\n"
STUDY = """
study: one
space: space.yaml
evaluators:
  m: {use: expression, metrics: {a: {formula: x}}}
objectives:
  - minimize: m.a
executor: EXECUTOR
budget: {trials: 30, time: 1 min, price: 4 $/h}
"""


@pytest.fixture
def plan(tmp_path):
    def made(executor: str) -> Plan:
        (tmp_path / "space.yaml").write_text(SPACE)
        (tmp_path / "study.yaml").write_text(STUDY.replace("EXECUTOR", executor))
        return plan_of(tmp_path / "study.yaml")

    return made


@pytest.mark.parametrize(
    ("own", "told", "workers", "meant"),
    [
        ("auto", None, 3, {"use": "processes", "workers": 3}),
        ("serial", None, 3, {"use": "processes", "workers": 3}),
        ("{use: serial, batch: 2}", None, 3, {"use": "processes", "workers": 3}),
        ("{use: serial, batch: 2}", "serial", None, {"use": "serial", "batch": 2}),
        (
            "{use: processes, workers: 2, timeout_s: 9}",
            None,
            3,
            {"use": "processes", "workers": 3, "timeout_s": 9},
        ),
        ("{use: processes, workers: 2}", "serial", None, {"use": "serial"}),
        (
            "auto",
            {"use": "processes", "timeout_s": 9},
            3,
            {"use": "processes", "timeout_s": 9, "workers": 3},
        ),
    ],
)
def test_an_executor_keeps_its_options_and_takes_what_is_told(plan, own, told, workers, meant):
    found = stated_executor(plan(own), told, workers)
    assert found is not None
    assert {"use": found.use, **found.options} == meant


def test_an_executor_is_the_studys_own_where_nothing_is_told(plan):
    assert stated_executor(plan("serial"), None) is None


def test_a_mapping_without_a_name_is_refused(plan):
    with pytest.raises(SpecError, match="names no executor"):
        stated_executor(plan("serial"), {"workers": 2})


def test_a_budget_keeps_what_is_not_told(plan):
    budget = stated_budget(plan("serial"), {"trials": 5, "time": None, "cost": "2 $"})
    assert (budget.trials, budget.time_s, budget.cost) == (5, 60.0, 2.0)
