"""Many processes work on one study at once: one budget, one numbering, one record to prove."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dse.core.trial import State
from dse.study.replay import Replay
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

DRIVER = Path(__file__).with_name("acknowledging_driver.py")

SPACE = """
space: many
parameters:
  a: {integer: [1, 64]}
  b: {integer: [1, 64]}
  c: {integer: [1, 64]}
  format: {choice: [bf16, fp8, mxfp4]}
"""

STUDY = """
study: many
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / (a * b) + c}, area: {formula: a * b + 3 * c}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
unread: [format]
reference: {chip.time: 2000, chip.area: 5000}
optimizer: OPTIMIZER
executor: {use: serial, batch: 1}
budget: {trials: TRIALS}
seed: 5
"""


def together(folder: Path, url: str, *, optimizer: str, drivers: int, trials: int) -> float:
    """How long so many processes took that worked on the study from the same instant."""
    (folder / "space.yaml").write_text(SPACE)
    path = folder / "many.yaml"
    path.write_text(STUDY.replace("OPTIMIZER", optimizer).replace("TRIALS", str(trials)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    outputs = [folder / f"said-{place}" for place in range(drivers)]
    processes = [begun([sys.executable, DRIVER, path, url], environment, one) for one in outputs]
    until = time.monotonic() + 300
    while not all(output.read_text() for output in outputs):
        assert time.monotonic() < until
        time.sleep(0.05)
    began = time.perf_counter()
    for process in processes:
        process.stdin.close()
    codes = [process.wait(timeout=3000) for process in processes]
    spent_s = time.perf_counter() - began
    errors = [output.with_suffix(".err").read_text() for output in outputs]
    assert (codes, errors) == ([0] * drivers, [""] * drivers)
    return spent_s


def begun(command: list, environment: dict[str, str], output: Path) -> subprocess.Popen:
    with output.open("w") as said, output.with_suffix(".err").open("w") as errors:
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=said, stderr=errors
        )


@contextmanager
def kept(url: str) -> Iterator[StudyEngine]:
    with closing(opened_storage(url)) as storage:
        yield StudyEngine.load("many", storage)


def check_whole(study: StudyEngine, trials: int) -> None:
    record = study.trials
    assert [trial.number for trial in record] == list(range(trials))
    assert {trial.state for trial in record} == {State.DONE}
    assert len({trial.design for trial in record}) == trials
    assert sorted(trial.number for trial in study.finished) == list(range(trials))
    proof = Replay(study).proof()
    assert (proof.mismatch, proof.trials, proof.unknown) == (None, trials, 0)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["random", "nsga2"])
def test_three_processes_share_a_budget_without_a_gap_or_a_design_twice(tmp_path, place, optimizer):
    together(tmp_path, place, optimizer=optimizer, drivers=3, trials=60)
    with kept(place) as study:
        check_whole(study, 60)
        assert len({trial.worker for trial in study.trials}) > 1


@pytest.mark.proof
@pytest.mark.parametrize("optimizer", ["random", "nsga2"])
def test_eight_processes_do_five_hundred_trials_each(tmp_path, place, optimizer, capsys):
    spent_s = together(tmp_path, place, optimizer=optimizer, drivers=8, trials=4_000)
    with kept(place) as study:
        check_whole(study, 4_000)
        shares = sorted(Counter(trial.worker for trial in study.trials).values())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{optimizer}, {place[:10]}: 4,000 trials in {spent_s:.0f} s: {shares}\n"
        )
