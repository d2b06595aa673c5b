"""Scenarios: what their formulas mean, what they share, and what each mistake is answered with."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Column
from dse.core.trial import State
from dse.errors import SpecError, SpecErrors
from dse.protocols import Task
from dse.schema.study.designs import design_of
from dse.schema.study.plan import plan_of

SPACE = """
space: s
parameters:
  rows:   {ordinal: [1, 2, 4, 8]}
  format: {choice: [int8, fp8]}
"""

STUDY = """
study: s
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: work / rows + rows * 1 s, unit: s}, area: {formula: rows}}}
  cost: {use: expression, metrics: {total: {formula: chip.time * 2, unit: s}}}
scenarios:
  chat:  {weight: 3, values: {work: 4 s}}
  batch: {weight: 1, values: {work: 64 s}}
objectives:
  - minimize: OBJECTIVE
unread: [format]
"""


def plan_from(folder: Path, study: str, space: str = SPACE):
    (folder / "space.yaml").write_text(space)
    path = folder / "study.yaml"
    path.write_text(study)
    return plan_of(path)


def asking(folder: Path, objective: str, goal: str = "minimize"):
    text = STUDY.replace("OBJECTIVE", objective).replace("minimize:", f"{goal}:")
    return plan_from(folder, text)


def mistakes_in(folder: Path, study: str) -> str:
    with pytest.raises((SpecError, SpecErrors)) as caught:
        plan_from(folder, study)
    return str(caught.value)


def loss_of(plan, rows: int) -> float:
    """The objective's loss of the design with so many rows, through the pipeline."""
    design = design_of({"rows": rows, "format": "int8"}, plan.problem.space)
    (outcome,) = plan.pipeline([Task(number=0, design=design)])
    assert outcome.state is State.DONE, outcome.failure
    columns = {name: Column(np.array([value])) for name, value in outcome.metrics.items()}
    return float(plan.problem.losses(columns, 1)[0, 0])


# With two rows, chat takes 4 / 2 + 2 = 4 s, and batch 64 / 2 + 2 = 34 s; weights 3/4 and 1/4.
CHAT, BATCH = 4.0, 34.0
VALUES = {
    "worst": ("minimize", "worst(chip.time)", BATCH),
    "worst of what is maximised": ("maximize", "worst(chip.time)", -CHAT),
    "worst of its negative": ("minimize", "-worst(chip.time)", -CHAT),
    "worst below a fraction": ("minimize", "1 s / worst(chip.time)", 1 / CHAT),
    "mean": ("minimize", "mean(chip.time)", 0.75 * CHAT + 0.25 * BATCH),
    "one scenario": ("minimize", "chip.time@chat", CHAT),
    "what does not differ": ("minimize", "chip.area@chat", 2.0),
    "worst of a formula": ("minimize", "worst(chip.time * chip.area)", BATCH * 2),
    "sum of both": ("minimize", "worst(chip.time) + mean(chip.time)", BATCH + 11.5),
    "cvar from the start is the mean": ("minimize", "cvar(chip.time, 0)", 11.5),
    "cvar of a whole case": ("minimize", "cvar(chip.time, 0.75)", BATCH),
    "cvar beyond the worst case": ("minimize", "cvar(chip.time, 0.9)", BATCH),
    "cvar that cuts a case": ("minimize", "cvar(chip.time, 0.5)", 0.5 * BATCH + 0.5 * CHAT),
    "cvar of what is maximised": ("maximize", "cvar(chip.time, 0.5)", -CHAT),
    "what reads what differs": ("minimize", "worst(cost.total)", 2 * BATCH),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_formula_over_scenarios_has_its_value(tmp_path, case):
    goal, objective, loss = VALUES[case]
    assert loss_of(asking(tmp_path, objective, goal), rows=2) == pytest.approx(loss)


def test_a_rule_over_scenarios_holds_in_the_worst_of_them(tmp_path):
    text = STUDY.replace("OBJECTIVE", "worst(chip.area)")
    text += "constraints:\n  - worst(chip.time) <= 40 s\n  - worst(chip.time) >= 3 s\n"
    problem = plan_from(tmp_path, text).problem
    metrics = {
        "chip.time@chat": Column(np.array([2.0, 4.0, 4.0])),
        "chip.time@batch": Column(np.array([34.0, 34.0, 45.0])),
    }
    assert (problem.slacks(metrics, 3) >= 0).all(axis=1).tolist() == [False, True, False]


def test_a_rule_over_a_bare_metric_holds_under_every_scenario(tmp_path):
    text = (
        STUDY.replace("OBJECTIVE", "worst(chip.area)") + "constraints: [3 s <= chip.time < 40 s]\n"
    )
    problem = plan_from(tmp_path, text).problem
    metrics = {
        "chip.time@chat": Column(np.array([2.0, 4.0, 4.0])),
        "chip.time@batch": Column(np.array([34.0, 34.0, 45.0])),
    }
    assert len(problem.limits) == 4
    assert (problem.slacks(metrics, 3) >= 0).all(axis=1).tolist() == [False, True, False]


def test_an_evaluator_that_no_scenario_changes_is_there_once(tmp_path):
    plan = asking(tmp_path, "worst(chip.time)")
    assert "chip.time@chat" in plan.problem.sources
    text = STUDY.replace("OBJECTIVE", "worst(chip.time)").replace(
        "objectives:", "objectives:\n  - minimize: board.area"
    )
    text = text.replace(
        "evaluators:",
        "evaluators:\n  board: {use: expression, metrics: {area: {formula: rows}}}",
    )
    assert "board.area" in plan_from(tmp_path, text).problem.sources


def test_scenarios_that_agree_about_an_evaluator_share_one(tmp_path):
    text = STUDY.replace("OBJECTIVE", "worst(chip.time)").replace(
        "objectives:", "  late: {values: {work: 64 s}}\nobjectives:"
    )
    plan = plan_from(tmp_path, text)
    labels = [bound.label for bound in plan.pipeline.bound]
    assert sorted(labels) == ["chip@batch", "chip@chat", "cost@batch", "cost@chat"]
    assert plan.problem.objectives[0].text == "worst(chip.time)"


def test_scenarios_give_evaluators_other_options(tmp_path):
    text = """
study: s
space: space.yaml
evaluators:
  chip: {use: accelerators.systolic, batch: 1, weight_format: int8, activation_format: int8}
scenarios:
  digits: {chip: {workload: digits-cnn}}
  photos: {chip: {workload: resnet50}}
objectives:
  - minimize: worst(chip.latency)
"""
    space = Path(__file__).parent.parent.parent / "spaces/accelerators/systolic.yaml"
    plan = plan_from(tmp_path, text, space.read_text())
    known = plan.problem.known(plan.problem.space.sample(20, plan.problem.rng(0)))
    digits, photos = known.columns["chip.latency@digits"], known.columns["chip.latency@photos"]
    assert (digits < photos / 10).all()


def test_a_measured_evaluator_is_measured_once_for_each_scenario(tmp_path):
    text = f"""
study: s
space: space.yaml
evaluators:
  board: {{use: command, run: [{sys.executable}, -S, -E, board.py], reads: [rows], metrics: {{time: s}}}}
scenarios:
  low:  {{values: {{load: 1}}}}
  high: {{values: {{load: 5}}}}
objectives:
  - minimize: worst(board.time)
unread: [format]
"""
    (tmp_path / "board.py").write_text(
        "import json, sys\ndesign = json.load(sys.stdin)\n"
        "print(json.dumps({'time': design['rows'] * design['load']}))\n"
    )
    text = text.replace("reads: [rows]", "reads: [rows, load]")
    plan = plan_from(tmp_path, text)
    design = design_of({"rows": 4, "format": "int8"}, plan.problem.space)
    (outcome,) = plan.pipeline([Task(number=0, design=design)])
    assert outcome.metrics == {"board.time@low": 4.0, "board.time@high": 20.0}
    assert outcome.measured == 2
    assert plan.problem.reads("board.time@low") == {"rows"}


def test_another_weight_is_another_study(tmp_path):
    before = asking(tmp_path, "mean(chip.time)").identity
    text = STUDY.replace("OBJECTIVE", "mean(chip.time)").replace("weight: 3", "weight: 4")
    after = plan_from(tmp_path, text).identity
    assert before["scenarios"] == {"chat": 0.75, "batch": 0.25}
    assert before["scenarios"] != after["scenarios"]


def study_asking(objective: str) -> str:
    return STUDY.replace("OBJECTIVE", objective)


BAD = {
    "which scenario": (
        study_asking("chip.time"),
        ["study.yaml:11", "differs between scenarios", "worst(chip.time)", "chip.time@chat"],
    ),
    "unknown scenario": (
        study_asking("chip.time@chta"),
        ["study.yaml:11", "no scenario 'chta'", "did you mean 'chat'"],
    ),
    "unknown metric": (
        study_asking("worst(chip.time) + chip.aera"),
        ["study.yaml:11", "no evaluator provides 'chip.aera'", "did you mean 'chip.area@chat'"],
    ),
    "misspelt function": (
        study_asking("wrost(chip.time)"),
        ["study.yaml:11", "no function 'wrost'", "did you mean 'worst'"],
    ),
    "nothing differs": (
        study_asking("worst(chip.area * 2 + rows)").replace(
            "evaluators:",
            "evaluators:\n  board: {use: expression, metrics: {area: {formula: rows}}}",
        ).replace("chip.area", "board.area"),
        ["study.yaml:12", "nothing in this worst(...) differs", "chip.time"],
    ),
    "units that do not fit": (
        study_asking("worst(chip.time) + 3 mm2"),
        ["study.yaml:11", "does not go with"],
    ),
    "level of no tail": (
        study_asking("cvar(chip.time, 1)"),
        ["study.yaml:11", "from 0 to below 1"],
    ),
    "cvar without a level": (study_asking("cvar(chip.time)"), ["study.yaml:11", "1 arguments"]),
    "neither better nor worse": (
        study_asking("abs(worst(chip.time) - 3 s)"),
        ["study.yaml:11", "larger or smaller values are worse", "worst(abs("],
    ),
    "a scenario of an unknown evaluator": (
        study_asking("worst(chip.time)").replace("weight: 3,", "weight: 3, chpi: {a: 1},"),
        ["study.yaml:8", "no evaluator 'chpi'", "did you mean 'chip'"],
    ),
    "an unknown option of a scenario": (
        study_asking("worst(chip.time)").replace("weight: 3,", "weight: 3, chip: {metrcs: 1},"),
        ["study.yaml:8", "no option 'metrcs'", "did you mean 'metrics'"],
    ),
    "another evaluator in a scenario": (
        study_asking("worst(chip.time)").replace("weight: 3,", "weight: 3, chip: {use: table},"),
        ["study.yaml:8", "not its 'use'"],
    ),
    "a value that nobody reads": (
        study_asking("worst(chip.time)").replace("{work: 4 s}", "{work: 4 s, wrok: 3}"),
        ["study.yaml:8", "no evaluator reads 'wrok'"],
    ),
    "a value that a design chooses": (
        study_asking("worst(chip.time)").replace("{work: 4 s}", "{work: 4 s, rows: 3}"),
        ["study.yaml:8", "rows is a parameter of the space"],
    ),
    "a name that is no word": (
        study_asking("worst(chip.time)").replace("  chat:", "  rush-hour:"),
        ["study.yaml:8", "'rush-hour' cannot stand in a formula"],
    ),
    "a weight of nothing": (
        study_asking("worst(chip.time)").replace("weight: 3", "weight: 0"),
        ["study.yaml:8", "weight", "more than 0"],
    ),
    "options that are no mapping": (
        study_asking("worst(chip.time)").replace("weight: 3,", "weight: 3, chip: fast,"),
        ["study.yaml:8", "expected a mapping"],
    ),
    "no scenarios": (
        study_asking("worst(chip.area)").replace("scenarios:", "").replace(
            "  chat:  {weight: 3, values: {work: 4 s}}\n", ""
        ).replace("  batch: {weight: 1, values: {work: 64 s}}\n", "").replace("work / rows", "4 s"),
        ["study.yaml:9", "the study has none"],
    ),
    "other metrics under another scenario": (
        study_asking("worst(chip.time)").replace(
            "weight: 1,", "weight: 1, chip: {metrics: {time: {formula: work, unit: s}}},"
        ),
        ["study.yaml:9", "other metrics", "area"],
    ),
    "a rule with a scenario that there is not": (
        study_asking("worst(chip.time)") + "constraints: [chip.time@chta <= 3 s]\n",
        ["study.yaml:13", "did you mean 'chat'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_about_scenarios_is_told_with_its_line_and_how_to_mend_it(tmp_path, case):
    text, expected = BAD[case]
    told = mistakes_in(tmp_path, text)
    missing = [words for words in expected if words not in told]
    assert not missing, told
