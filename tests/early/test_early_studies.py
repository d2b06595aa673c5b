"""Studies whose trials report: what is stopped, what it saves, and that the record bears it out."""

import sys
from dataclasses import replace

import pytest

from dse.core.trial import State
from dse.errors import SpecErrors
from dse.interop.archive.study_record import Record
from dse.schema.study.budget import Budget
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.early_stop_watch import KIND, contradiction
from dse.study.replay import Replay
from dse.study.study_engine import StudyEngine

SPACE = """
space: rates
parameters:
  rate: {ordinal: range(1 .. 30)}
  width: {ordinal: [1, 2, 4]}
"""
STUDY = """
study: train
space: space.yaml
evaluators:
  net: {{use: command, run: [{python}, -S, -E, bench.py], metrics: {{loss: '', time: s}}}}
  chip: {{use: expression, metrics: {{area: {{formula: width * 2}}}}}}
objectives: [{{minimize: net.loss}}, {{minimize: chip.area}}]
optimizer: random
executor: {executor}
budget: {{trials: 24}}
seed: 5
early_stopping: {early}
"""
BENCH = """
import json, sys
design = json.load(sys.stdin)
for step in range(1, 10):
    loss = design["rate"] * (1 + 1 / step) / design["width"]
    print(json.dumps({"step": step, "loss": loss, "time": step * design["rate"]}), flush=True)
print(json.dumps({"loss": design["rate"] / design["width"], "time": 9 * design["rate"]}))
"""
HALVING = "{rule: successive-halving, eta: 3, rungs: [1, 3]}"


def written(tmp_path, early=HALVING, executor="serial", objectives=None):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "bench.py").write_text(BENCH)
    text = STUDY.format(python=sys.executable, early=early, executor=executor)
    if objectives:
        text = text.replace("[{minimize: net.loss}, {minimize: chip.area}]", objectives)
    (tmp_path / "study.yaml").write_text(text)
    return tmp_path / "study.yaml"


def run(path, **options):
    study = StudyEngine.open(path, storage=MemoryStorage())
    study.run(**options)
    return study


def checked(study):
    record = Record.of(study.storage, study.name)
    return contradiction(
        study.plan.early_stopping,
        study.problem,
        record.trials,
        record.reports,
        finished=record.finished,
        events=record.events,
    )


@pytest.mark.slow
def test_trials_that_are_dominated_early_are_stopped_and_told_why(tmp_path):
    study = run(written(tmp_path))
    stopped = [trial for trial in study.trials if trial.state is State.STOPPED]
    said = [event.text for event in study.events if event.kind == KIND]
    assert len(stopped) >= 8
    assert [text.partition(":")[0] for text in said] == [f"trial {t.number}" for t in stopped]
    assert all("chip.area" in trial.metrics for trial in stopped)
    assert not {trial.number for trial in study.front.trials} & {t.number for t in stopped}


@pytest.mark.slow
def test_the_front_is_that_of_a_study_that_stops_nothing(tmp_path):
    study = run(written(tmp_path))
    (tmp_path / "all").mkdir()
    whole = run(written(tmp_path / "all", early="null"))
    assert [t.design for t in study.trials] == [t.design for t in whole.trials]
    assert [t.design for t in study.front.trials] == [t.design for t in whole.front.trials]
    steps = [len(one.storage.reports(one.name)) for one in (study, whole)]
    assert steps[1] == 24 * 9
    assert steps[0] < 0.7 * steps[1]


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "{use: processes, workers: 2}"])
def test_the_record_bears_out_every_stop(tmp_path, executor):
    study = run(written(tmp_path, executor=executor))
    assert checked(study) is None
    assert Replay(study).proof().mismatch is None
    assert State.STOPPED in {trial.state for trial in study.trials}


@pytest.mark.slow
def test_a_study_that_was_interrupted_stops_the_same_trials(tmp_path):
    whole = run(written(tmp_path))
    parts = StudyEngine.open(tmp_path / "study.yaml", storage=MemoryStorage())
    parts.run(budget=Budget(trials=7))
    StudyEngine.load("train", parts.storage).run()
    again = StudyEngine.load("train", parts.storage)
    assert [t.state for t in again.trials] == [t.state for t in whole.trials]
    assert [t.metrics for t in again.trials] == [t.metrics for t in whole.trials]


@pytest.mark.slow
def test_a_record_that_was_changed_is_found_out(tmp_path):
    study = run(written(tmp_path))
    record = Record.of(study.storage, "train")
    stopped = next(t.number for t in record.trials if t.state is State.STOPPED)
    went_on = next(t.number for t in record.trials if t.state is State.DONE)
    spared = [replace(t, state=State.DONE) if t.number == stopped else t for t in record.trials]
    ended = [replace(t, state=State.STOPPED) if t.number == went_on else t for t in record.trials]
    rule, problem = study.plan.early_stopping, study.problem
    found = contradiction(rule, problem, spared, record.reports)
    assert found == (stopped, "it went on, and had to be stopped")
    assert contradiction(rule, problem, ended, record.reports)[0] == went_on


@pytest.mark.slow
def test_what_is_certain_to_be_dominated_is_stopped_and_the_front_stays(tmp_path):
    asked = "[{minimize: net.time}, {minimize: chip.area}]"
    study = run(written(tmp_path, "{rule: certain, worsens: [net.time]}", objectives=asked))
    (tmp_path / "all").mkdir()
    whole = run(written(tmp_path / "all", "null", objectives=asked))
    stopped = {trial.number for trial in study.trials if trial.state is State.STOPPED}
    assert len(stopped) >= 8
    assert [t.design for t in study.front.trials] == [t.design for t in whole.front.trials]
    assert not stopped & {trial.number for trial in whole.front.trials}
    assert checked(study) is None


@pytest.mark.parametrize(
    ("early", "problem"),
    [
        ("{rule: successive-halving}", "takes only steps"),
        ("{rule: successive-halving, rungs: [3, 1]}", "do not rise"),
        ("{rule: successive-halving, rungs: [1], eta: 1}", "eta is at least 2"),
        ("{rule: successive-halving, rungs: [1], worsens: [net.loss]}", "takes only steps"),
        ("{rule: certain}", "takes metrics in"),
        ("{rule: certain, worsens: [net.los]}", "did you mean 'net.loss'"),
        ("{rule: certain, worsens: [chip.area]}", "no objective or limit reads a measured"),
        ("{rule: certain, best: {net.loss: 1 s}}", "is no quantity in 1"),
        ("{rule: median}", "successive-halving"),
    ],
)
def test_a_rule_that_cannot_be_is_told_with_its_line(tmp_path, early, problem):
    with pytest.raises(SpecErrors, match=problem):
        plan_of(written(tmp_path, early=early))


def test_another_rule_is_another_study(tmp_path):
    rules = [HALVING, HALVING.replace("eta: 3", "eta: 2"), "null"]
    identities = [plan_of(written(tmp_path, early=rule)).identity.get("early") for rule in rules]
    assert identities[0] != identities[1]
    assert identities[2] is None
