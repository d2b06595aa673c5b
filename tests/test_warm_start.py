"""Studies that begin with what earlier ones found."""

import sys
from pathlib import Path

import numpy as np
import pytest

from dse.core.trial import State
from dse.errors import StudyError
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  format: {choice: FORMATS}
  rows:   {ordinal: ROWS}
"""
STUDY = """
study: NAME
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: rows * rows + 3}}}
  board:
    use: command
    run: [PYTHON, -S, -E, board.py]
    reads: READS
    metrics: {accuracy: ''}
OPTIONS
objectives: [{maximize: board.accuracy}, {minimize: chip.energy}]
optimizer: OPTIMIZER
executor: serial
budget: {measurements: 4}
"""
BOARD = """
import json, sys
design = json.load(sys.stdin)
with open("calls", "a") as calls:
    calls.write(design["format"] + "\\n")
print(json.dumps({"accuracy": {"bf16": 0.9, "fp8": 0.8, "mxfp4": 0.7, "int4": 0.6}[design["format"]]}))
"""


def study_file(folder: Path, name: str, more: str = "", **words: str) -> Path:
    told = {"FORMATS": "[bf16, fp8, mxfp4]", "ROWS": "[4, 8, 16]", "OPTIMIZER": "random"}
    told |= {"READS": "[format]", "OPTIONS": "", "NAME": name, "PYTHON": sys.executable, **words}
    folder.mkdir(exist_ok=True)
    (folder / "board.py").write_text(BOARD)
    space, study = SPACE, STUDY
    for word, text in told.items():
        space, study = space.replace(word, text), study.replace(word, text)
    (folder / "space.yaml").write_text(space)
    (folder / "study.yaml").write_text(study + more)
    return folder / "study.yaml"


@pytest.fixture
def earlier(tmp_path: Path) -> MemoryStorage:
    """A storage with the study ``old``: four measurements at most, three readings in all."""
    storage = MemoryStorage()
    StudyEngine.open(study_file(tmp_path / "old", "old"), storage=storage).run()
    return storage


def begun(tmp_path: Path, storage: MemoryStorage, **words: str) -> StudyEngine:
    return StudyEngine.open(
        study_file(tmp_path / "new", "new", "transfer_from: [old]\n", **words), storage=storage
    )


def test_what_an_earlier_study_measured_is_known_and_costs_nothing(tmp_path, earlier):
    old = StudyEngine.load("old", earlier)
    study = begun(tmp_path, earlier, FORMATS="[bf16, fp8, mxfp4, int4]")
    study.run(budget=Budget(measurements=1))
    known = {trial.design["format"] for trial in old.trials}
    calls = (tmp_path / "new" / "calls").read_text().split()
    assert len(known) == 3
    assert calls == ["int4"]
    assert sum(trial.measured for trial in study.trials) == 1


def test_designs_that_are_legal_here_come_first_and_count_for_no_budget(tmp_path, earlier):
    old = StudyEngine.load("old", earlier)
    study = begun(tmp_path, earlier)
    study.run(budget=Budget(trials=2))
    first = study.trials[: len(study.inherited.designs)]
    dear = {trial.design for trial in old.trials if trial.measured}
    assert dear <= {trial.design for trial in first}
    assert all(trial.state is State.DONE and not trial.measured for trial in first)
    assert len(study.trials) == len(first) + 2
    told = {trial.design: trial.metrics for trial in old.trials}
    assert [trial.metrics for trial in first] == [told[trial.design] for trial in first]


def test_readings_hold_in_a_space_with_other_parameters_beside_them(tmp_path, earlier):
    study = begun(tmp_path, earlier, ROWS="[32, 64]")
    study.run(budget=Budget(trials=4))
    assert study.inherited.designs == ()
    assert len(study.trials) == 4
    assert not (tmp_path / "new" / "calls").exists()


def test_what_the_earlier_study_finds_later_makes_no_difference(tmp_path, earlier):
    study = begun(tmp_path, earlier, FORMATS="[bf16, fp8, mxfp4, int4]", ROWS="[32, 64]")
    twin_file = study_file(
        tmp_path / "twin",
        "twin",
        "transfer_from: [old]\n",
        FORMATS="[bf16, fp8, mxfp4, int4]",
        ROWS="[32, 64]",
    )
    twin = StudyEngine.open(twin_file, storage=earlier)
    study.run()
    StudyEngine.load("old", earlier).run(budget=Budget(measurements=9, trials=9))
    twin.run()
    assert [t.design for t in twin.trials] == [t.design for t in study.trials]
    assert twin.inherited.studies == study.inherited.studies


def test_a_study_goes_on_when_the_earlier_one_is_forgotten(tmp_path, earlier):
    begun(tmp_path, earlier).run(budget=Budget(trials=1))
    earlier.delete("old")
    study = StudyEngine.load("new", earlier)
    study.run(budget=Budget(trials=2))
    assert len(study.trials) == len(study.inherited.designs) + 2


def test_a_study_that_is_cut_short_at_its_beginning_takes_over_the_rest(tmp_path, earlier):
    study = begun(tmp_path, earlier)
    asked = study.inherited.designs[:1]
    earlier.add("new", asked)
    study.run(budget=Budget(trials=2))
    numbers = len(study.inherited.designs)
    assert [t.design for t in study.trials[:numbers]] == list(study.inherited.designs)


def test_another_version_is_a_guess_and_no_reading(tmp_path, earlier):
    study = begun(tmp_path, earlier, OPTIONS="    timeout: 30 s")
    (prior,) = study.problem.priors
    assert study.inherited.readings == ()
    assert prior.study == "old"
    assert set(prior.metrics) == {"board.accuracy"}
    old = {
        trial.design: trial.metrics["board.accuracy"]
        for trial in StudyEngine.load("old", earlier).finished
    }
    found = dict(zip(prior.designs, prior.metrics["board.accuracy"].tolist(), strict=True))
    assert found == old


def test_the_same_evaluator_under_another_name_is_known(tmp_path, earlier):
    path = study_file(tmp_path / "new", "new", "transfer_from: [old]\n")
    path.write_text(
        path.read_text().replace("  board:", "  bench:").replace("board.acc", "bench.acc")
    )
    study = StudyEngine.open(path, storage=earlier)
    assert {name for r in study.inherited.readings for name in r.metrics} == {"bench.accuracy"}
    study.run(budget=Budget(trials=1))
    assert not (tmp_path / "new" / "calls").exists()


def test_designs_that_the_space_lacks_are_a_guess(tmp_path, earlier):
    study = begun(tmp_path, earlier, ROWS="[4, 32]")
    (prior,) = study.problem.priors
    assert {design["rows"] for design in study.inherited.designs} == {4}
    assert {design["rows"] for design in prior.designs} >= {8, 16}
    assert not set(prior.designs) & set(study.inherited.designs)
    assert np.isfinite(prior.metrics["board.accuracy"]).all()


def test_what_was_taken_over_is_said(tmp_path, earlier):
    study = begun(tmp_path, earlier)
    study.run(budget=Budget(trials=1))
    (event,) = [event for event in study.events if event.kind == "prior"]
    assert "3 readings known" in event.text


def test_another_prior_is_another_question(tmp_path, earlier):
    begun(tmp_path, earlier)
    study_file(tmp_path / "new", "new")
    with pytest.raises(StudyError, match="prior"):
        StudyEngine.open(tmp_path / "new" / "study.yaml", storage=earlier)


def test_a_prior_that_does_not_exist_is_told(tmp_path):
    path = study_file(tmp_path / "new", "new", "transfer_from: [odl]\n")
    with pytest.raises(StudyError, match="there is no study 'odl'"):
        StudyEngine.open(path, storage=MemoryStorage())


def test_an_earlier_study_may_stand_in_another_storage(tmp_path):
    url = f"sqlite:///{tmp_path}/other.db"
    StudyEngine.open(study_file(tmp_path / "old", "old"), storage=url).run()
    more = f"transfer_from: [{{study: old, storage: '{url}'}}]\n"
    study = StudyEngine.open(study_file(tmp_path / "new", "new", more), storage=MemoryStorage())
    assert len(study.inherited.readings) == 3


def test_auto_looks_at_a_measurement_of_its_own_and_not_at_what_was_free(tmp_path, earlier):
    study = begun(tmp_path, earlier, OPTIMIZER="auto", FORMATS="[bf16, fp8, mxfp4, int4]")
    study.run(budget=Budget(measurements=1))
    first = len(study.inherited.designs)
    assert len(study.trials) > first
    (choice,) = [event.text for event in study.events if event.kind == "choice"]
    assert choice


def test_the_front_is_completed_from_what_was_taken_over(tmp_path, earlier):
    study = begun(tmp_path, earlier, OPTIMIZER="auto", ROWS="[2, 4, 8, 16]")
    study.run(budget=Budget(measurements=1, trials=1))
    best = {(t.design["format"], t.design["rows"]) for t in study.front.trials}
    assert best == {("bf16", 2)}
