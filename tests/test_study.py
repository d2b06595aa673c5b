"""Studies as a notebook sees them: opened, run, completed, exact, and refused when changed."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.trial import State
from dse.errors import StudyError
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine
from dse_evaluators.generic.expression import Formulas

SPACE = """
space: s
parameters:
  format: {choice: [bf16, fp8, mxfp4]}
  rows:   {ordinal: [4, 8, 16, 32]}
  clock:  {integer: [1, 6]}
"""

MODELLED = """
study: modelled
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / (rows * clock)}, energy: {formula: clock ** 2 + rows}}}
objectives:
  - minimize: chip.time
  - minimize: chip.energy
unread: [format]
"""

MEASURED = """
study: measured
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: (clock - 3) ** 2 + rows}, time: {formula: 1 / (rows * clock)}}}
  board: {use: command, run: [PYTHON, -S, -E, board.py], reads: [format], metrics: {accuracy: ''}}
objectives:
  - maximize: board.accuracy
  - minimize: chip.energy
  - minimize: chip.time
executor: serial
budget: {measurements: 3}
"""

BOARD = """
import json, sys
design = json.load(sys.stdin)
with open("calls", "a") as calls:
    calls.write(design["format"] + "\\n")
print(json.dumps({"accuracy": {"bf16": 0.9, "fp8": 0.8, "mxfp4": 0.7}[design["format"]]}))
"""


def study_in(folder: Path, text: str, storage=None) -> StudyEngine:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.py").write_text(BOARD)
    path = folder / "study.yaml"
    path.write_text(text.replace("PYTHON", sys.executable))
    return StudyEngine.open(path, storage=storage or MemoryStorage("memory://"))


@pytest.mark.parametrize("budget", ["", "budget: {measurements: 2}\n"])
def test_a_modelled_study_has_the_exact_front_and_says_so(tmp_path, budget):
    study = study_in(tmp_path, MODELLED + budget)
    study.run()
    designs = [d for batch in study.problem.space.enumerate() for d in batch.designs()]
    points = {(1000 / (d["rows"] * d["clock"]), d["clock"] ** 2 + d["rows"]) for d in designs}
    best = {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    found = {(t.metrics["chip.time"], t.metrics["chip.energy"]) for t in study.front.trials}
    assert found == best
    assert study.exact


def test_a_reading_is_measured_once_and_the_front_is_completed_for_free(tmp_path):
    study = study_in(tmp_path, MEASURED)
    study.run()
    calls = (tmp_path / "calls").read_text().split()
    assert sorted(calls) == ["bf16", "fp8", "mxfp4"]
    assert len(study.front.trials) > 3
    assert sum(trial.measured for trial in study.trials) == 3
    assert "completed" in {event.kind for event in study.events}


def test_a_strict_limit_leaves_its_bound_outside(tmp_path):
    text = MODELLED + "constraints: [chip.energy > 5]\n"
    study = study_in(tmp_path, text)
    study.run()
    assert min(t.metrics["chip.energy"] for t in study.front.trials) == 8


def test_a_study_is_not_gone_on_with_by_another_version_of_its_evaluator(tmp_path, monkeypatch):
    storage = MemoryStorage("memory://")
    study_in(tmp_path, MODELLED, storage).run()
    monkeypatch.setattr(Formulas, "version", "another")
    later = StudyEngine.load("modelled", storage)
    assert later.front.trials
    with pytest.raises(StudyError, match=r"evaluators\.chip"):
        later.run()


def test_more_unfinished_trials_than_places_are_all_taken_up(tmp_path):
    storage = MemoryStorage("memory://")
    study = study_in(tmp_path, MEASURED, storage)
    designs = study.problem.space.sample(3, study.problem.rng(0)).designs()
    trials = storage.add("measured", designs)
    storage.move("measured", [trial.number for trial in trials[:2]], State.RUNNING)
    study.run()
    assert all(trial.state is State.DONE for trial in study.trials)
    assert [trial.design for trial in study.trials[:3]] == designs


@pytest.mark.parametrize("name", ["../esc", "", "a\nb"])
def test_a_study_has_a_name_that_can_be_a_files(tmp_path, name):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(MODELLED)
    with pytest.raises(StudyError, match="is no name"):
        StudyEngine.open(tmp_path / "study.yaml", name=name, storage=MemoryStorage("memory://"))


def test_a_study_is_rebuilt_from_its_record_when_its_files_are_gone(tmp_path):
    storage = MemoryStorage("memory://")
    study_in(tmp_path, MODELLED, storage)
    (tmp_path / "study.yaml").unlink()
    (tmp_path / "space.yaml").unlink()
    study = StudyEngine.load("modelled", storage)
    study.run()
    assert study.exact


@pytest.mark.parametrize("command", [["front", "x"], ["status"], ["studies", "list"]])
def test_looking_for_studies_leaves_no_file(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, [*command, "--storage", "sqlite:///none.db"])
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_told_its_space_otherwise_is_gone_on_with(tmp_path):
    spec = study_in(tmp_path, MODELLED).storage.spec("modelled")
    older = MemoryStorage()
    space = {"parameters": ["Ordinal(name='rows')"], "conditions": {}, "constraints": []}
    identity = {k: v for k, v in spec["identity"].items() if k != "order of parameters"}
    older.create("modelled", {**spec, "identity": {**identity, "space": space}})
    assert StudyEngine.open(spec["path"], storage=older).run()
    assert StudyEngine.load("modelled", older).front.trials


def test_each_finished_trial_is_reported_once_over_all_phases_of_a_run(tmp_path: Path) -> None:
    study, reported = study_in(tmp_path, MEASURED, MemoryStorage()), []
    study.run(on_finished=reported.append)
    assert "choice" in {event.kind for event in study.events}  # two loops at least
    assert [trial.number for trial in reported] == study.storage.finished_order("measured")
