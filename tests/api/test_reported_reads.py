"""Metrics that a program tells say what they depend on, so that nothing is measured twice."""

from __future__ import annotations

import pytest

from dse import Metric, Study, evaluator
from dse.errors import SpecError, SpecErrors, StudyError
from dse.study.replay import Replay

SPACE = {"bits": [2, 4, 8], "rows": [8, 16, 32], "cols": [8, 16]}
ACCURACY = Metric("accuracy", goal="maximize")
TIME = Metric("time", "us", goal="minimize")


def area() -> object:
    metric = Metric("area", "mm^2", goal="minimize")
    return evaluator(metric, kind="modelled")(lambda rows, cols, bits: {"area": rows * cols * bits})


def study_of(told, **options) -> Study:
    return Study("own", SPACE, {"chip": area()}, metrics=told, storage="memory://", **options)


def test_what_a_metric_reads_is_known_to_optimizers():
    problem = study_of({ACCURACY: ["bits"]}).problem
    assert problem.reads("reported.accuracy") == {"bits"}
    assert study_of({ACCURACY: None}).problem.reads("reported.accuracy") == set(SPACE)
    assert study_of({"accuracy": "bits"}, maximize="accuracy").problem.reads(
        "reported.accuracy"
    ) == {"bits"}


def test_designs_that_share_what_was_told_are_completed():
    study = study_of({ACCURACY: ["bits"]})
    asked = []
    while trials := study.ask():
        for trial in trials:
            asked.append(trial.design["bits"])
            study.tell(trial, {"accuracy": 1 - 1 / trial.design["bits"]})
    assert sorted(asked) == [2, 4, 8]
    assert study.ended == "no design is left to ask"
    front = {trial.design["bits"]: trial for trial in study.front.found.trials}
    assert sorted(front) == [2, 4, 8]
    assert {(t.design["rows"], t.design["cols"]) for t in front.values()} == {(8, 8)}


def test_a_design_of_which_all_is_known_is_not_given_to_be_measured():
    study = study_of({ACCURACY: ["bits"]}, optimizer="sobol")
    asked = []
    while trials := study.ask():
        for trial in trials:
            asked.append(trial.design["bits"])
            study.tell(trial, {"accuracy": 1 - 1 / trial.design["bits"]})
    assert sorted(asked) == [2, 4, 8]
    assert len(study.trials) == 18
    assert sum(trial.measured for trial in study.trials) == 3
    assert all(t.metrics["reported.accuracy"] == 1 - 1 / t.design["bits"] for t in study.trials)
    assert Replay(study.engine).proof().mismatch is None


def test_metrics_that_read_otherwise_are_shared_on_their_own():
    study = study_of({ACCURACY: ["bits"], TIME: ["rows"]}, optimizer="sobol")
    assert study.problem.reads("reported2.time") == {"rows"}
    measured = {"accuracy": 0, "time": 0}
    while trials := study.ask():
        for trial in trials:
            values = {"accuracy": trial.design["bits"] / 8, "time": 100 / trial.design["rows"]}
            known = {name.partition(".")[2] for name in trial.metrics}
            left = {name: value for name, value in values.items() if name not in known}
            for name in left:
                measured[name] += 1
            study.tell(trial, left)
    assert measured == {"accuracy": 3, "time": 3}
    assert len(study.trials) == 18


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({ACCURACY: ["bit"]}, "bit"),
        ({ACCURACY: [3]}, r"accuracy reads \[3\], which are no parameters"),
        ({ACCURACY: []}, r"accuracy reads \[\], which are no parameters"),
        ({ACCURACY: 7}, "accuracy reads 7, which are no parameters"),
        ({3: ["bits"]}, "3 is no metric"),
        ([3], "3 is no metric"),
    ],
)
def test_what_cannot_be_read_is_refused(told, words):
    with pytest.raises((SpecError, SpecErrors), match=words):
        study_of(told)


@pytest.mark.parametrize("optimizer", ["sobol", "random"])
def test_no_two_designs_at_once_share_what_is_told(optimizer):
    study = study_of({ACCURACY: ["bits"]}, optimizer=optimizer)
    measured = []
    while trials := study.ask(6):
        at_once = [trial.design["bits"] for trial in trials]
        assert len(set(at_once)) == len(at_once)
        measured += at_once
        for trial in trials:
            study.tell(trial, {"accuracy": 1 - 1 / trial.design["bits"]})
    assert sorted(measured) == [2, 4, 8]
    assert len(study.trials) == 18
    assert sum(trial.measured for trial in study.trials) == 3
    assert all(t.metrics["reported.accuracy"] == 1 - 1 / t.design["bits"] for t in study.trials)
    assert Replay(study.engine).proof().mismatch is None


def test_a_design_that_waits_for_another_is_given_where_that_one_fails():
    study = study_of({ACCURACY: ["bits"]}, optimizer="sobol")
    first = study.ask(18)
    assert len(first) == 3
    told = {trial.design["bits"]: trial for trial in first}
    study.tell(told[2], failed="the machine broke")
    study.tell(told[4], {"accuracy": 0.75})
    study.tell(told[8], {"accuracy": 0.875})
    (again,) = study.ask(18)
    assert again.design["bits"] == 2
    assert again.number != told[2].number
    study.tell(again, {"accuracy": 0.5})
    assert study.ask(18) == []
    states = [trial.state.value for trial in study.trials]
    assert (states.count("done"), states.count("failed")) == (17, 1)


def test_who_asks_before_telling_is_given_other_designs_or_told_what_to_report():
    study = study_of({ACCURACY: ["bits"]}, optimizer="sobol")
    asked = [study.ask()[0] for _ in range(3)]
    assert sorted(trial.design["bits"] for trial in asked) == [2, 4, 8]
    with pytest.raises(StudyError, match=f"trials {asked[0].number}, {asked[1].number}"):
        study.ask()
    for trial in asked:
        study.tell(trial, {"accuracy": 1 - 1 / trial.design["bits"]})
    assert study.ask() == []
    assert sum(trial.measured for trial in study.trials) == 3
