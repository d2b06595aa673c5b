"""Several drivers stop trials early in one study: every stop, and every trial spared, is proved."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dse.core.trial import State
from dse.study.replay import Replay
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).with_name("acknowledging_driver.py")
SPACE = """
space: rates
parameters:
  rate: {ordinal: range(1 .. 60)}
  width: {ordinal: [1, 2, 4]}
"""
STUDY = """
study: train
space: space.yaml
evaluators:
  net: {use: command, run: [PYTHON, -S, -E, bench.py], metrics: {loss: '', time: s}}
  chip: {use: expression, metrics: {area: {formula: width * 2}}}
objectives: [{minimize: OBJECTIVE}, {minimize: chip.area}]
optimizer: nsga2
executor: {use: processes, workers: 2}
budget: {trials: 40}
retries: {lost: 9}
seed: 5
early_stopping: EARLY
"""
BENCH = """
import json, sys, time
design = json.load(sys.stdin)
for step in range(1, 7):
    loss = design["rate"] * (1 + 1 / step) / design["width"]
    print(json.dumps({"step": step, "loss": loss, "time": step * design["rate"]}), flush=True)
    time.sleep(0.02)
print(json.dumps({"loss": design["rate"] / design["width"], "time": 6 * design["rate"]}))
"""
RULES = {
    "net.loss": "{rule: successive-halving, eta: 2, rungs: [1, 3]}",
    "net.time": "{rule: certain, worsens: [net.time]}",
}
LONG_S = 300.0


def written(folder: Path, objective: str) -> Path:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "bench.py").write_text(BENCH)
    words = {"PYTHON": sys.executable, "OBJECTIVE": objective, "EARLY": RULES[objective]}
    text = STUDY
    for word, meant in words.items():
        text = text.replace(word, meant)
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"


def begun(path: Path, url: str, output: Path) -> subprocess.Popen:
    """A driver that waits for a word."""
    with output.open("w") as said, output.with_suffix(".err").open("w") as errors:
        return subprocess.Popen(
            [sys.executable, DRIVER, path, url],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=errors,
            start_new_session=True,
        )


def wait_for(output: Path, lines: int) -> None:
    until = time.monotonic() + LONG_S
    while output.read_text().count("\n") < lines:
        assert time.monotonic() < until, output.with_suffix(".err").read_text()
        time.sleep(0.02)


def two_begun(folder: Path, url: str, objective: str) -> list[tuple[subprocess.Popen, Path]]:
    """Two drivers that set out at one instant."""
    path = written(folder, objective)
    outputs = [folder / f"said-{place}" for place in range(2)]
    drivers = [begun(path, url, output) for output in outputs]
    for output in outputs:
        wait_for(output, 1)
    for driver in drivers:
        driver.stdin.close()
    return list(zip(drivers, outputs, strict=True))


@contextmanager
def kept(url: str) -> Iterator[StudyEngine]:
    with closing(opened_storage(url)) as storage:
        yield StudyEngine.load("train", storage)


def check(study: StudyEngine) -> None:
    """Both drivers heard reports, some trials were stopped, and the record proves all of it."""
    trials = study.trials
    assert len(trials) == 40
    assert {trial.state for trial in trials} == {State.DONE, State.STOPPED}
    assert len({trial.worker for trial in trials}) > 1
    proof = Replay(study).proof()
    assert (proof.mismatch, proof.unknown, proof.trials) == (None, 0, 40)


@pytest.mark.parametrize(
    "objective", ["net.loss", pytest.param("net.time", marks=pytest.mark.proof)]
)
def test_two_drivers_stop_what_the_record_bears_out(tmp_path, place, objective):
    both = two_begun(tmp_path, place, objective)
    codes = [driver.wait(timeout=LONG_S) for driver, _ in both]
    assert codes == [0, 0], [output.with_suffix(".err").read_text() for _, output in both]
    with kept(place) as study:
        check(study)


@pytest.mark.proof
@pytest.mark.parametrize("objective", RULES)
def test_so_it_is_where_one_of_them_is_killed_among_its_reports(tmp_path, place, objective):
    (one, said), (other, _) = two_begun(tmp_path, place, objective)
    wait_for(said, 4)
    os.kill(one.pid, signal.SIGKILL)
    assert [one.wait(timeout=LONG_S), other.wait(timeout=LONG_S)] == [-signal.SIGKILL, 0]
    with kept(place) as study:
        check(study)
