"""Only what objectives, limits and stated parts need decides; what else is undefined stays blank."""

import math

import pytest

from dse import InfeasibleError, Study, evaluator
from dse.core.proof import Proof
from dse.core.trial import State
from dse.report.json.columns import trials_columns
from dse.report.json.front_json import front_json, trials_json
from dse.storage.memory import MemoryStorage

PLAIN = {"n": [0, 2], "m": [1, 2]}
CONDITIONAL = {"n": [0, 2], "m": [1, 2], "k": {"ordinal": [3], "when": "n == 2"}}


def formulas(**texts):
    return {
        "use": "expression",
        "metrics": {name: {"formula": text} for name, text in texts.items()},
    }


def function(kind, **columns):
    """An evaluator that tells one number of ``n`` for each name; an error is raised."""

    @evaluator(*columns, kind=kind)
    def tells(n: int) -> dict[str, float]:
        return {name: column[n] for name, column in columns.items()}

    return tells


def raising(kind, error):
    @evaluator("x", kind=kind)
    def fails(n: int) -> dict[str, float]:
        if n == 0:
            raise error
        return {"x": 1.0}

    return fails


def run(evaluators, space=None, **asked):
    space = space or PLAIN
    read = "k" if any("k * 2" in str(one) for one in evaluators.values()) else "n"
    unread = [name for name in space if name not in ("n", read)]
    asked = {"minimize": "e.cost", "optimizer": "exhaustive", "unread": unread, **asked}
    storage = MemoryStorage("memory://")
    study = Study("s", space, evaluators, storage=storage, **asked)
    study.run(progress=False, on_error="keep")
    return study


BEST_BY_COST = [
    {"e": formulas(cost="n + 1", unused="1 / n")},
    {"e": formulas(cost="n + 1", unused="0 / n")},
    {"e": formulas(cost="n + 1"), "other": formulas(unused="1 / n", more="n")},
    {"e": formulas(cost="n + 1", unused="k * 2")},
    {"e": formulas(cost="n + 1", text="x.y + 1"), "x": formulas(y="1 / n")},
    {"e": function("modelled", cost={0: 1.0, 2: 3.0}, unused={0: math.nan, 2: 1.0})},
    {"e": function("measured", cost={0: 1.0, 2: 3.0}, unused={0: math.inf, 2: 1.0})},
    {"e": function("measured", cost={0: 1.0, 2: 3.0}, unused={0: None, 2: 1.0})},
    {"e": formulas(cost="n + 1"), "f": raising("modelled", ValueError("no"))},
    {"e": formulas(cost="n + 1"), "f": raising("measured", ValueError("no"))},
]


@pytest.mark.parametrize("optimizer", ["exhaustive", "decompose", "random"])
@pytest.mark.parametrize("evaluators", BEST_BY_COST)
def test_what_nobody_asks_for_takes_no_design_off_the_front(evaluators, optimizer):
    measured = any(getattr(one, "kind", "") == "measured" for one in evaluators.values())
    if optimizer == "decompose" and measured:
        optimizer = "grey-box"
    study = run(evaluators, CONDITIONAL, optimizer=optimizer, budget={"trials": 20})
    assert [trial.design["n"] for trial in study.front] == [0]
    assert study.front[0].metrics["e.cost"] == 1.0


@pytest.mark.parametrize("evaluators", BEST_BY_COST[:1] + BEST_BY_COST[5:8])
def test_an_undefined_metric_is_blank_in_tables_and_null_in_json(evaluators):
    study = run(evaluators)
    told = front_json("s", study.front.found, study.trials, proof=Proof())
    assert told["front"][0]["metrics"] == {"e.cost": 1.0, "e.unused": None}
    (row,) = [
        one
        for one in trials_json("s", study.problem, study.trials)["trials"]
        if one["trial"] == study.front[0].number
    ]
    assert row["metrics"]["e.unused"] is None
    assert trials_columns(study.problem, study.trials)["e.unused"][study.front[0].number] is None


ASKED_FOR = [
    ({"minimize": ["e.cost", "e.unused"]}, {}),
    ({"constraints": "e.unused <= 5"}, {}),
    ({"minimize": "e.cost + 0 * e.unused"}, {}),
    ({"minimize": "r.z"}, {"r": formulas(z="e.unused + e.cost")}),
]


@pytest.mark.parametrize(("asked", "more"), ASKED_FOR)
def test_what_is_asked_for_decides(asked, more):
    study = run({**BEST_BY_COST[0], **more}, **asked)
    assert [trial.design["n"] for trial in study.front] == [2]


def test_an_evaluator_that_reads_what_is_undefined_is_undefined_and_not_called():
    calls = []

    @evaluator("z", kind="measured", reads=["x.y"])
    def reader(**read) -> dict[str, float]:
        calls.append(read)
        return {"z": 1.0}

    study = run({"e": formulas(cost="n + 1"), "x": formulas(y="1 / n"), "r": reader})
    done = {trial.design["n"]: trial.metrics for trial in study.trials if trial.state is State.DONE}
    assert "r.z" not in done.get(0, {})
    assert all(read for read in calls)


def test_that_a_design_cannot_exist_counts_whoever_says_it():
    study = run(
        {"e": formulas(cost="n + 1"), "f": raising("modelled", InfeasibleError("too wide"))}
    )
    assert [trial.design["n"] for trial in study.front] == [2]


def test_what_was_measured_with_a_blank_is_not_measured_again():
    calls = []

    @evaluator("y", "unused", kind="measured")
    def board(n: int) -> dict[str, float]:
        calls.append(n)
        return {"y": n, "unused": math.nan}

    run({"board": board}, minimize="board.y")
    assert sorted(calls) == [0, 2]
