"""Evaluators with chances: the same ones for every design, told as means and quantiles."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.metric import Metric
from dse.core.trial import State
from dse.errors import SpecError, SpecErrors
from dse.protocols import Task
from dse.schema.models import ReplicatesSpec
from dse.schema.study.designs import design_of
from dse.schema.study.plan import plan_of
from dse.schema.study.repeats import Replicated

SPACE = """
space: s
parameters:
  rows: {ordinal: [1, 2, 4, 8]}
"""

STUDY = """
study: noisy
space: space.yaml
evaluators:
  board:
    use: command
    run: [PYTHON, -S, -E, board.py]
    reads: [rows, seed]
    metrics: {time: s}
    replicates: {count: 8, seed_input: seed, quantiles: [0.5, 0.999]}
objectives:
  - minimize: board.time
  - minimize: rows
executor: serial
optimizer: exhaustive
"""

# A run's noise depends on its seed alone; its size is that of the differences between designs.
BOARD = """
import json, sys
design = json.load(sys.stdin)
noise = (design["seed"] * 37 % 11) / 10
print(json.dumps({"time": 10 / design["rows"] + noise}))
"""

NOISE = [(seed * 37 % 11) / 10 for seed in range(8)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "board.py").write_text(BOARD.replace("board", str(tmp_path / "board")))
    file = tmp_path / "study.yaml"
    file.write_text(STUDY.replace("PYTHON", sys.executable))
    return file


def told_of(path: Path, rows: int):
    plan = plan_of(path)
    design = design_of({"rows": rows}, plan.problem.space)
    (outcome,) = plan.pipeline([Task(number=0, design=design)])
    assert outcome.state is State.DONE, outcome.failure
    return outcome


def test_the_mean_of_all_replicates_is_told_with_its_standard_error(path):
    outcome = told_of(path, rows=2)
    error = statistics.stdev(NOISE) / len(NOISE) ** 0.5
    assert outcome.metrics["board.time"] == pytest.approx(5 + statistics.mean(NOISE))
    assert outcome.spread == {"board.time": pytest.approx(error)}


def test_quantiles_are_metrics_of_their_own(path):
    outcome = told_of(path, rows=2)
    assert outcome.metrics["board.time.p50"] == pytest.approx(5 + statistics.median(NOISE))
    assert outcome.metrics["board.time.p99_9"] == pytest.approx(5 + max(NOISE), abs=0.01)


def test_every_design_meets_the_same_chances(path):
    one, other = told_of(path, rows=2), told_of(path, rows=4)
    difference = one.metrics["board.time"] - other.metrics["board.time"]
    assert difference == pytest.approx(5 - 2.5, abs=1e-12)


def test_an_objective_may_be_a_quantile(path):
    path.write_text(path.read_text().replace("minimize: board.time", "minimize: board.time.p50"))
    assert plan_of(path).problem.objectives[0].unit == "s"


def test_another_count_of_replicates_is_another_study(path):
    before = plan_of(path).identity
    path.write_text(path.read_text().replace("count: 8", "count: 9"))
    assert plan_of(path).identity["evaluators"] != before["evaluators"]


BAD = {
    "nothing takes the seed": ("reads: [rows, seed]", "reads: [rows]", "reads no 'seed'"),
    "one replicate": ("count: 8", "count: 1", "count is at least 2"),
    "a quantile beyond the largest": ("0.999", "1.5", "less than 1"),
    "a misspelt key": ("quantiles:", "quantile:", "did you mean 'quantiles'"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_about_replicates_is_told(path, case):
    old, new, words = BAD[case]
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises((SpecError, SpecErrors)) as caught:
        plan_of(path)
    assert words in str(caught.value)
    assert "study.yaml:" in str(caught.value)


class Picky:
    """Reads a seed and refuses every one above two."""

    reads = frozenset({"rows", "seed"})
    optional: frozenset[str] = frozenset()
    units: ClassVar[dict[str, str]] = {}
    provides: ClassVar[dict[str, Metric]] = {}
    kind = "measured"
    version = "1"

    def check_values(self, values):
        if max(values["seed"]) > 2:
            raise SpecError(f"seeds of {list(values['seed'])} for {values['rows']}")


def test_an_evaluator_judges_the_values_of_every_replicate():
    three, four = (Replicated(Picky(), ReplicatesSpec(count=n)) for n in (3, 4))
    three.check_values({"rows": (1, 8)})
    with pytest.raises(SpecError, match=r"seeds of \[0, 1, 2, 3\] for \(1, 8\)"):
        four.check_values({"rows": (1, 8)})


@pytest.mark.slow
def test_the_command_tells_which_places_on_the_front_are_in_doubt(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    runner = CliRunner()
    assert runner.invoke(app, ["run", "study.yaml"]).exit_code == 0
    told = json.loads(runner.invoke(app, ["front", "noisy", "--format", "json"]).output)
    assert set(told["membership"]) == {"0", "1", "2", "3"}
    assert (
        "no trial's place on the front is in doubt" in runner.invoke(app, ["front", "noisy"]).output
    )
