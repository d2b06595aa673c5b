"""``dse sweep``: optimizers over seeds, cut and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.trial import Trial
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  x: {real: [0, 1]}
  y: {real: [0, 1]}
"""

STUDY = """
study: swept
space: space.yaml
evaluators:
  m:
    use: expression
    metrics:
      a: {formula: 1 s * x + 1 s * y, unit: s}
      b: {formula: 1 J * (1 - x) + 1 J * y, unit: J}
objectives:
  - minimize: m.a
  - minimize: m.b
reference: {m.a: 2 s, m.b: 2 J}
optimizer: {use: nsga2, pop_size: 4}
budget: {trials: 8}
seed: 5
"""

SLOW = """
study: slow
space: space.yaml
evaluators:
  m: {use: command, run: [python3, m.py], metrics: {a: s, b: J}, timeout: 60 s}
objectives:
  - minimize: m.a
  - minimize: m.b
executor: serial
budget: {measurements: 4}
"""

MEASURE = """
import json, sys, time
d = json.loads(sys.stdin.read())
with open("log", "a") as log:
    log.write(".")
time.sleep(0.15)
print(json.dumps({"a": d["x"] + d["y"], "b": 1 - d["x"] + d["y"]}))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "slow.yaml").write_text(SLOW)
    (tmp_path / "m.py").write_text(MEASURE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def swept(*words: str):
    return CliRunner().invoke(app, ["sweep", *words, "-q"])


def load(name: str) -> StudyEngine:
    return StudyEngine.load(name)


def studies() -> list[str]:
    return load("swept.random.5").storage.studies()


def test_every_optimizer_runs_with_every_seed_and_they_are_compared(folder):
    found = swept(
        "study.yaml", "--optimizer", "random", "--optimizer", "sobol", "--seeds", "2",
        "--format", "json",
    )  # fmt: skip
    told = json.loads(found.stdout)
    assert studies() == ["swept.random.5", "swept.sobol.5", "swept.random.6", "swept.sobol.6"]
    assert {group["name"]: len(group["studies"]) for group in told["groups"]} == {
        "random": 2,
        "sobol": 2,
    }
    assert [study["trials"] for group in told["groups"] for study in group["studies"]] == [8] * 4


def test_without_an_optimizer_the_files_own_is_swept_with_its_options(folder):
    assert swept("study.yaml", "--seeds", "1").exit_code == 0
    assert load("swept.nsga2.5").plan.optimizer.options == {"pop_size": 4}


def test_the_files_own_optimizer_keeps_its_options_when_it_is_named(folder):
    assert swept("study.yaml", "--seeds", "1", "--optimizer", "nsga2").exit_code == 0
    assert load("swept.nsga2.5").plan.optimizer.options == {"pop_size": 4}


def test_a_study_of_a_sweep_is_rebuilt_with_its_own_optimizer(folder):
    swept("study.yaml", "--optimizer", "sobol", "--seeds", "1")
    rebuilt = load("swept.sobol.5")
    assert rebuilt.plan.optimizer.use == "sobol"
    assert CliRunner().invoke(app, ["resume", "swept.sobol.5", "--trials", "10"]).exit_code == 0
    assert len(load("swept.sobol.5").trials) == 10


def test_a_sweep_that_has_ended_runs_nothing_again(folder):
    words = ["study.yaml", "--optimizer", "random", "--seeds", "2"]
    swept(*words)
    before = [load("swept.random.5").trials, load("swept.random.5").events]
    assert swept(*words).exit_code == 0
    assert [load("swept.random.5").trials, load("swept.random.5").events] == before


def test_a_larger_budget_goes_on(folder):
    swept("study.yaml", "--optimizer", "random", "--seeds", "1")
    swept("study.yaml", "--optimizer", "random", "--seeds", "1", "--trials", "20")
    assert len(load("swept.random.5").trials) == 20


def test_an_unknown_optimizer_is_told_before_anything_runs(folder):
    found = swept("study.yaml", "--optimizer", "sobbol", "--seeds", "1")
    assert "did you mean 'sobol'" in str(found.exception)


def told(trial: Trial) -> tuple[object, ...]:
    return trial.number, trial.design, trial.told, trial.metrics


def wait_for(path: Path, size: int) -> None:
    """Until the file has grown so much."""
    until = time.monotonic() + 300
    while time.monotonic() < until and not (path.exists() and path.stat().st_size >= size):
        time.sleep(0.01)


SWEEP = [
    sys.executable, "-m", "dse", "sweep", "slow.yaml", "--optimizer", "random",
    "--optimizer", "tpe", "--seeds", "2", "-q",
]  # fmt: skip


@pytest.mark.proof
def test_a_sweep_that_was_interrupted_ends_where_an_undisturbed_one_does(folder):
    running = subprocess.Popen([*SWEEP, "--name", "cut"], stderr=subprocess.PIPE, text=True)
    wait_for(folder / "log", 6)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=300)
    assert running.returncode == 3
    assert "what was finished is kept" in said
    again = subprocess.run([*SWEEP, "--name", "cut"], check=True, capture_output=True, text=True)
    whole = subprocess.run([*SWEEP, "--name", "one"], check=True, capture_output=True, text=True)
    assert "random" in again.stdout
    assert "random" in whole.stdout
    names = ["random.0", "tpe.0", "random.1", "tpe.1"]
    pairs = [
        [list(map(told, load(f"{stem}.{n}").trials)) for n in names] for stem in ("cut", "one")
    ]
    assert pairs[0] == pairs[1]
