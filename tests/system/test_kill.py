"""A study that is killed again and again ends where an undisturbed one does."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dse.core.trial import State
from dse.study.study_engine import StudyEngine

SPACE = """
space: plan
parameters:
  tp:     {ordinal: [1, 2, 4, 8]}
  pp:     {ordinal: [1, 2, 4, 8, 16]}
  dp:     {ordinal: [1, 2, 4, 8, 16, 32, 64]}
  micro:  {integer: [1, 8]}
  format: {choice: [bf16, fp8, mxfp4]}
  block:  {ordinal: [16, 32], when: format == 'mxfp4'}
constraints:
  - tp * pp * dp == 64
"""

STUDY = """
study: killed
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], metrics: {time: s, loss: ''}}
  cost:  {use: expression, metrics: {memory: {formula: 'micro * 1 GiB + 64 GiB / (tp * pp)', unit: GiB}}}
objectives:
  - minimize: board.time
  - minimize: board.loss
  - minimize: cost.memory
optimizer: OPTIMIZER
executor: serial
budget: {measurements: MEASUREMENTS}
seed: 11
"""

BOARD = """
import json, sys
d = json.load(sys.stdin)
if d["dp"] == 64 and d["format"] == "fp8":
    sys.exit("out of memory")
speed = {"bf16": 1.0, "fp8": 1.7, "mxfp4": 2.3}[d["format"]]
time = (1 + 0.2 * (d["tp"] - 1) + (d["pp"] - 1) / (4 * d["micro"])) / speed
loss = {"bf16": 0.0, "fp8": 0.02, "mxfp4": 0.07}[d["format"]] + d.get("block", 0) / 1e3
print(json.dumps({"time": time, "loss": loss + d["dp"] / 1e4}))
"""


def study_in(folder: Path, optimizer: str, measurements: int) -> Path:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.py").write_text(BOARD)
    text = STUDY.replace("OPTIMIZER", optimizer).replace("MEASUREMENTS", str(measurements))
    path = folder / "study.yaml"
    path.write_text(text.replace("PYTHON", sys.executable))
    return path


def start(path: Path, database: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "dse", "run", str(path), "--quiet"]
    environment = {**os.environ, "DSE_STORAGE": f"sqlite:///{database}", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, start_new_session=True)


def table(database: Path) -> list[tuple]:
    trials = StudyEngine.load("killed", f"sqlite:///{database}").trials
    return [
        (t.number, dict(t.design), t.told, t.state, dict(t.metrics), t.failure, t.measured)
        for t in trials
    ]


def killed_and_undisturbed(
    folder: Path, optimizer: str, measurements: int, kills: int
) -> tuple[list[tuple], list[tuple], int]:
    """The trials of a study killed so often, those of its twin, and how many kills struck it alive.

    The instants are drawn over what the undisturbed twin took, so they fall into its start, its
    suggestions, its measurements and its writes alike.
    """
    path = study_in(folder, optimizer, measurements)
    began = time.perf_counter()
    assert start(path, folder / "whole.db").wait(timeout=600) == 0
    whole_s = time.perf_counter() - began
    rng = random.Random(os.urandom(8))
    struck = 0
    while struck < kills:
        process = start(path, folder / "torn.db")
        time.sleep(rng.uniform(0.1, 1.0) * whole_s * rng.choice([0.3, 0.6, 1.0]))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            struck += 1
        else:  # it ended first: judge it, and begin anew
            assert process.returncode == 0
            assert table(folder / "torn.db") == table(folder / "whole.db")
            (folder / "torn.db").unlink()
        process.wait(timeout=300)
    assert start(path, folder / "torn.db").wait(timeout=600) == 0
    return table(folder / "torn.db"), table(folder / "whole.db"), struck


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [pytest.param("random", marks=pytest.mark.proof), "nsga2"])
def test_a_killed_study_ends_where_an_undisturbed_one_does(tmp_path, optimizer):
    torn, whole, struck = killed_and_undisturbed(tmp_path, optimizer, 30, kills=4)
    assert struck == 4
    assert torn == whole
    assert {row[3] for row in whole} <= {State.DONE, State.FAILED}
    assert len(whole) == 30


@pytest.mark.proof
@pytest.mark.parametrize("optimizer", ["random", "sobol", "nsga2", "grey-box", "qlognehvi", "ax"])
def test_twenty_kills_at_random_instants_change_nothing(tmp_path, optimizer):
    torn, whole, struck = killed_and_undisturbed(tmp_path, optimizer, 24, kills=20)
    assert struck == 20
    assert torn == whole
