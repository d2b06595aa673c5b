"""The command line as a user meets it: results, exit codes, and no traceback for a mistake."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SPACE = """
space: toy
parameters:
  x: {ordinal: [1, 2, 3, 4, 5, 6, 7, 8]}
  y: {ordinal: [1, 2, 3, 4, 5, 6, 7, 8]}
  mode: {choice: [fine, raise, hang, rubbish, nan, inf, missing, killed, impossible]}
constraints:
  - mode == 'fine' or x == y
  - mode != 'hang' or x == 1
"""

STUDY = """
study: toy
question: Which x and y?
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], metrics: {time: ms, loss: ''}, timeout: 5 s}
objectives:
  - minimize: board.time
  - minimize: board.loss
reference: {board.time: 0.1 s, board.loss: 100}
optimizer: exhaustive
executor: {use: processes, workers: 2}
"""

BOARD = """
import json, os, signal, sys, time
d = json.load(sys.stdin)
open("begun", "a").write(".")
m = d["mode"]
if m == "raise": raise SystemExit("the board is on fire")
if m == "hang": time.sleep(60)
if m == "rubbish": print("hello"); sys.exit()
if m == "killed": os.kill(os.getpid(), signal.SIGKILL)
if m == "impossible": print(json.dumps({"infeasible": "too hot"})); sys.exit()
time_ms = {"nan": float("nan"), "inf": float("inf")}.get(m, d["x"] + 0.1 * d["y"])
answer = {"time": time_ms, "loss": {"value": 9.0 - d["x"] + (d["y"] - 4) ** 2, "spread": 0.1}}
if m == "missing": del answer["loss"]
print(json.dumps(answer))
"""


@pytest.fixture
def folder(shell) -> Path:
    (shell.folder / "space.yaml").write_text(SPACE)
    (shell.folder / "board.py").write_text(BOARD)
    (shell.folder / "study.yaml").write_text(STUDY.replace("PYTHON", sys.executable))
    return shell.folder


def table(shell, *words: str) -> Any:
    """What a command says as JSON."""
    return json.loads(shell([*words, "--format", "json"]).stdout)


@pytest.mark.slow
def test_a_study_survives_whatever_its_evaluator_does(shell, folder):
    shell(["run", "study.yaml"])
    trials = table(shell, "trials", "toy")["trials"]
    assert len(trials) == 64 + 7 * 8 + 1
    by_mode = {}
    for trial in trials:
        failure = trial["fault"] or {"kind": "", "reason": ""}
        by_mode.setdefault(trial["design"]["mode"], set()).add((trial["state"], failure["kind"]))
    assert by_mode == {
        "fine": {("done", "")},
        "raise": {("failed", "raised")},
        "hang": {("failed", "timeout")},
        "rubbish": {("failed", "invalid")},
        "nan": {("failed", "invalid")},
        "inf": {("failed", "invalid")},
        "missing": {("failed", "invalid")},
        "killed": {("failed", "lost")},
        "impossible": {("infeasible", "infeasible")},
    }
    reasons = {t["design"]["mode"]: t["fault"]["reason"] for t in trials if t["fault"]}
    assert "the board is on fire" in reasons["raise"]
    assert "too hot" in reasons["impossible"]
    assert "loss" in reasons["missing"]

    front = table(shell, "front", "toy")
    assert (front["exact"], front["exact_over"], front["failed"]) == (False, 64, 6 * 8 + 1)
    assert front["reference_point"] == [100.0, 100.0]
    assert [o["unit"] for o in front["objectives"]] == ["ms", ""]
    assert {(e["design"]["x"], e["design"]["y"]) for e in front["front"]} >= {(1, 4), (8, 4)}
    assert "exact over the 64 that have values" in shell(["status", "toy"]).stdout

    shell(["report", "toy", "-o", "toy.html"])
    assert (folder / "toy.html").stat().st_size > 1_000_000
    again = shell(["run", "study.yaml"])
    assert "exact over the 64 designs that have values; 49 of 121 legal" in again.stderr


@pytest.mark.slow
def test_a_changed_study_is_refused_with_the_part_that_changed(shell, folder):
    shell(["run", "study.yaml", "--trials", "2", "--executor", "serial", "--quiet"])
    study = folder / "study.yaml"
    study.write_text(study.read_text().replace("minimize: board.loss", "maximize: board.loss"))
    told = shell(["run", "study.yaml"], code=2).stderr
    assert "asks something else: objectives" in told
    assert "--name" in told


@pytest.mark.slow
def test_studies_are_listed_compared_and_forgotten(shell, folder):
    for name, seed in (("one", "1"), ("two", "2")):
        text = (folder / "study.yaml").read_text().replace("exhaustive", "random")
        (folder / f"{name}.yaml").write_text(text)
        words = ["--name", name, "--seed", seed, "--trials", "6", "--executor", "serial", "-q"]
        shell(["run", f"{name}.yaml", *words])
    listed = table(shell, "studies", "list")
    assert [(s["study"], s["finished"]) for s in listed] == [("one", 6), ("two", 6)]
    compared = table(shell, "compare", "one", "two")
    assert compared["reference_point"] == [100.0, 100.0]
    shell(["trials", "one", "--format", "parquet", "-o", "one.parquet"])
    assert (folder / "one.parquet").read_bytes()[:4] == b"PAR1"
    shell(["front", "one", "-o", "front.csv"])
    assert (folder / "front.csv").read_text().startswith("trial,")
    assert "has no known extension" in shell(["front", "one", "-o", "front.txt"], code=2).stderr
    assert "is a folder" in shell(["report", "one", "-o", "."], code=2).stderr
    shell(["report", "one", "two", "-o", "both.html"])
    assert "one" in (folder / "both.html").read_text()
    assert shell(["front", "one", "--format", "csv"]).stdout.startswith("trial,")
    shell(["studies", "delete", "one", "--yes"])
    assert "there is no study 'one'" in shell(["front", "one"], code=2).stderr


@pytest.mark.slow
def test_an_interrupted_study_says_how_to_go_on_and_does(shell, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("DSE_STORAGE", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "dse", "run", "study.yaml", "--executor", "serial"],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    await_second(folder / "begun")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "go on with: dse resume toy" in told
    assert "Traceback" not in told
    before = table(shell, "trials", "toy")["trials"]
    kept = [t for t in before if t["state"] not in ("pending", "running")]
    assert kept
    shell(["resume", "toy", "--trials", str(len(before) + 2), "--executor", "serial", "-q"])
    after = table(shell, "trials", "toy")["trials"]
    assert after[: len(kept)] == kept
    assert len(after) == len(before) + 2


def await_second(begun: Path) -> None:
    """Wait for the second trial; a driver that runs them one by one has stored the first."""
    until = time.monotonic() + 120
    while not begun.exists() or len(begun.read_text()) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
def test_one_design_is_evaluated_without_a_study(shell, folder):
    words = ["evaluate", "study.yaml", "--set", "x=3", "--set", "y=4", "--set", "mode=fine"]
    told = table(shell, *words)
    assert told["metrics"]["board.time"]["value"] == pytest.approx(3.4)
    assert told["metrics"]["board.loss"]["spread"] == pytest.approx(0.1)
    assert not (folder / "dse.db").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "stduy.yaml"], "did you mean 'study.yaml'"),
        (["front", "nothing"], "there is no study 'nothing'"),
        (["resume", "nothing", "--storage", "sqlite:///no/such/folder/x.db"], "no/such/folder"),
        (["front", "toy", "--storage", "mysql://x"], "write sqlite:///relative.db"),
        (["evaluate", "study.yaml", "--set", "x=9"], "x cannot be 9"),
        (["evaluate", "study.yaml", "--set", "z=9"], "there is no 'z'"),
        (["plugins", "show", "nsg2"], "did you mean 'nsga2'"),
        (["check", "nothing.yaml"], "there is no file"),
        (["run", "study.yaml", "--executor", "cluster"], "no executor 'cluster'"),
        (["frnt"], "frnt"),
        (["run"], "Missing argument"),
    ],
)
@pytest.mark.slow
def test_a_mistake_ends_in_one_message_and_code_two(shell, folder, words, told):
    assert told in shell(words, code=2).stderr


@pytest.mark.slow
def test_the_command_and_the_module_are_the_program(folder):
    environment = {**os.environ, "DSE_STORAGE": f"sqlite:///{folder}/none.db"}
    for program in ([str(Path(sys.executable).with_name("dse"))], [sys.executable, "-m", "dse"]):
        words = [*program, "front", "toy"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: there is no study 'toy'")


def test_help_starts_without_any_heavy_library():
    code = (
        "import sys; from dse.cli import app; "
        "heavy = {'torch', 'ax', 'botorch', 'pymoo', 'sqlalchemy', 'plotly', 'pint', 'numpy'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_checking_the_quickstart_imports_no_heavy_library():
    code = (
        "import sys; from typer.testing import CliRunner; from dse.cli.app import app; "
        "result = CliRunner().invoke(app, ['check', 'library:studies/quickstart.yaml']); "
        "assert result.exit_code == 0, result.output; "
        "heavy = {'torch', 'ax', 'botorch', 'pymoo', 'sqlalchemy', 'plotly', 'scipy.stats', 'sklearn'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
