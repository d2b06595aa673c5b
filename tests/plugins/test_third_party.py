"""A stranger's package, once installed, is as good as ours: found by name, and within the law."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).with_name("third_party")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the package is installed, as a user would install it."""
    folder = tmp_path_factory.mktemp("site")
    offline = ("--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", *offline)
    subprocess.run([*pip, "--target", folder, PACKAGE], check=True)
    return folder


def told(site: Path, folder: Path, *arguments: str) -> str:
    """What Python prints with the package on its path."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


FIND = """
import json
from dse.registry import load
wanted = {"evaluators": "stranger.roofline", "optimizers": "stranger.climb",
          "executors": "stranger.lone", "storages": "onefile", "functions": "stranger.square"}
print(json.dumps({group: load(group, name).__name__ for group, name in wanted.items()}))
"""


def test_each_plug_in_is_found_by_name(site: Path, tmp_path: Path) -> None:
    assert json.loads(told(site, tmp_path, "-c", FIND)) == {
        "evaluators": "Roofline",
        "optimizers": "Climb",
        "executors": "Lone",
        "storages": "OneFile",
        "functions": "square",
    }


FUNCTION = """
from dse.core.batch import Batch
from dse_evaluators.generic.python import Python
square = Python(function="stranger.square", metrics={"area": "mm2"})
print(square.version, square.evaluate(Batch.of([{"side": 3.0}])).columns["area"][0])
"""


def test_a_registered_function_is_an_evaluator(site: Path, tmp_path: Path) -> None:
    assert told(site, tmp_path, "-c", FUNCTION) == "3.1 9.0\n"


SPACE = """
space: kernels
parameters:
  intensity: {ordinal: [0.5, 8], unit: FLOP/B}
  efficiency: {ordinal: [0.5, 0.7, 0.9]}
"""

STUDY = """
study: strangers
space: space.yaml
evaluators:
  kernel: {use: stranger.roofline, peak: 1.0e+13, bandwidth: 2.0e+12}
objectives:
  - maximize: kernel.attained
optimizer: {use: stranger.climb, curiosity: 0.5}
executor: {use: stranger.lone, workers: 2}
budget: {trials: 50}
"""

RUN = """
from dse.study.study_engine import StudyEngine
if __name__ == "__main__":
    study = StudyEngine.open("study.yaml", storage="onefile://studies.json")
    reason = study.run()
    again = StudyEngine.load("strangers", "onefile://studies.json")
    print(reason, len(again.trials), again.front.trials[0].metrics["kernel.attained"], sep="; ")
"""


def test_a_study_runs_on_strangers_alone(site: Path, tmp_path: Path) -> None:
    """Six designs; the best has the peak, 10 TFLOP/s, at an efficiency of 0.9."""
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "run.py").write_text(RUN)
    assert told(site, tmp_path, "run.py") == "no design is left to ask; 6; 9000.0\n"


@pytest.mark.parametrize(
    "contract",
    [
        "TestRoofline",
        "TestClimb",
        "TestLone",
        "TestLoneIsolates",
        "TestOneFile",
        "TestOneFileIsShared",
        "TestOneFileSurvives",
    ],
)
def test_each_plug_in_keeps_the_laws(site: Path, tmp_path: Path, contract: str) -> None:
    tests = f"{PACKAGE / 'contracts.py'}::{contract}"
    done = told(site, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    assert " passed" in done
    assert "skipped" not in done
