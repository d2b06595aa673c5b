"""Objectives told relative to a named baseline, modelled and measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dse.core.trial import State
from dse.errors import SpecError, SpecErrors, StudyError
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows:   {ordinal: [1, 2, 4, 8]}
  format: {choice: [int8, int4]}
  group:  {ordinal: [32, 64], when: format == 'int4'}
"""

MODELLED = """
study: relative
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: rows * 3 mJ, unit: mJ}}}
baselines:
  small: {rows: 1, format: int8}
  large: {rows: 8, format: int4, group: 64}
objectives:
  - minimize: OBJECTIVE
unread: [format, group]
"""

MEASURED = """
study: measured
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], reads: [rows], metrics: {time: s}}
baselines:
  reference: {rows: 4, format: int8}
objectives:
  - minimize: ratio(board.time, reference)
constraints:
  - board.time <= 2 * baseline(board.time, reference)
optimizer: {use: exhaustive}
executor: serial
unread: [format, group]
"""

BOARD = """
import json, sys
rows = json.load(sys.stdin)["rows"]
print(json.dumps({"time": rows * 5}))
"""


def plan_from(folder: Path, objective: str):
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(MODELLED.replace("OBJECTIVE", objective))
    return plan_of(folder / "study.yaml")


def study_in(folder: Path, board: str = BOARD, storage=None) -> StudyEngine:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.py").write_text(board)
    (folder / "study.yaml").write_text(MEASURED.replace("PYTHON", sys.executable))
    return StudyEngine.open(folder / "study.yaml", storage=storage or MemoryStorage("memory://"))


# rows * 3 mJ: 3 mJ of the small baseline, 24 mJ of the large one.
VALUES = {
    "ratio": ("ratio(chip.energy, small)", "", 4.0),
    "explicit": ("chip.energy / baseline(chip.energy, small)", "", 4.0),
    "another baseline": ("ratio(chip.energy, large)", "", 0.5),
    "of a formula": ("ratio(chip.energy * 2 + 6 mJ, small)", "", 2.5),
    "a difference": ("chip.energy - baseline(chip.energy, small)", "mJ", 9.0),
    "of a parameter": ("ratio(rows, large)", "", 0.5),
}


@pytest.mark.parametrize("case", VALUES)
def test_an_objective_is_told_relative_to_a_baseline(tmp_path, case):
    text, unit, value = VALUES[case]
    problem = plan_from(tmp_path, text).problem
    batch = problem.space.batch([{"rows": 4, "format": "int8"}])
    known = problem.known(batch)
    from dse.core.batch import Column

    columns = {**batch.columns, **{n: Column(v) for n, v in known.columns.items()}}
    assert problem.losses(columns, 1)[0, 0] == pytest.approx(value)
    assert problem.objectives[0].unit == unit


def test_named_baselines_are_asked_before_all_else(tmp_path):
    plan = plan_from(tmp_path, "ratio(chip.energy, small)")
    assert [dict(design) for design in plan.problem.baselines] == [
        {"rows": 1, "format": "int8"},
        {"rows": 8, "format": "int4", "group": 64},
    ]
    assert plan.awaited == {}


def test_a_measured_baseline_is_measured_first_and_then_known(tmp_path):
    storage = MemoryStorage("memory://")
    study = study_in(tmp_path, storage=storage)
    assert set(study.plan.awaited) == {"reference"}
    assert study.front.trials == ()
    study.run()
    assert dict(study.trials[0].design) == {"rows": 4, "format": "int8"}
    assert study.plan.awaited == {}
    front = study.front
    assert front.trials[0].design["rows"] == 1
    assert front.losses.tolist() == [[0.25]]
    again = StudyEngine.load("measured", storage)
    assert again.plan.awaited == {}
    assert again.front.losses.tolist() == [[0.25]]


def test_a_limit_may_be_told_relative_to_a_measured_baseline(tmp_path):
    study = study_in(tmp_path, BOARD.replace("rows * 5", "rows * rows"))
    study.run()
    kept = study.problem.feasible(study.trials)
    assert {t.design["rows"] for t, ok in zip(study.trials, kept, strict=True) if ok} == {1, 2, 4}


def test_a_baseline_that_cannot_be_measured_ends_the_study_with_its_reason(tmp_path):
    study = study_in(tmp_path, "raise SystemExit(3)")
    with pytest.raises(StudyError, match="'reference' could not be measured"):
        study.run()
    assert [trial.state for trial in study.trials] == [State.FAILED]


def test_a_ratio_under_scenarios_compares_each_with_its_own(tmp_path):
    text = MODELLED.replace("rows * 3 mJ", "rows * 3 mJ + load").replace(
        "baselines:",
        "scenarios:\n  low: {values: {load: 0 mJ}}\n  high: {values: {load: 3 mJ}}\nbaselines:",
    )
    (tmp_path / "space.yaml").write_text(SPACE)
    path = tmp_path / "study.yaml"
    path.write_text(text.replace("OBJECTIVE", "worst(ratio(chip.energy, small))"))
    problem = plan_of(path).problem
    from dse.core.batch import Column

    columns = {"chip.energy@low": Column.of([12.0]), "chip.energy@high": Column.of([15.0])}
    assert problem.losses(columns, 1)[0, 0] == pytest.approx(12 / 3)
    path.write_text(text.replace("OBJECTIVE", "ratio(worst(chip.energy), small)"))
    assert plan_of(path).problem.losses(columns, 1)[0, 0] == pytest.approx(15 / 6)


BAD = {
    "unknown baseline": (
        "ratio(chip.energy, smal)",
        ["study.yaml:10", "no baseline 'smal'", "did you mean 'small'"],
    ),
    "unknown metric": (
        "ratio(chip.enrgy, small)",
        ["study.yaml:10", "no evaluator provides 'chip.enrgy'", "did you mean 'chip.energy'"],
    ),
    "no name": ("ratio(chip.energy, 3)", ["study.yaml:10", "no baseline ''", "small"]),
    "a word": ("ratio(format, small)", ["study.yaml:10", "not a quantity"]),
    "nothing to compare with": (
        "ratio(group, small)",
        ["study.yaml:10", "for the baseline 'small' this comes to nothing"],
    ),
    "zero": ("ratio(rows - 1, small)", ["study.yaml:10", "this comes to 0"]),
    "units that do not fit": (
        "chip.energy + baseline(rows, small)",
        ["study.yaml:10", "does not go with"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_about_a_baseline_is_told_with_its_line(tmp_path, case):
    text, expected = BAD[case]
    with pytest.raises((SpecError, SpecErrors)) as caught:
        plan_from(tmp_path, text)
    missing = [words for words in expected if words not in str(caught.value)]
    assert not missing, str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  small: {rows: 1,", "  small: {rows: 3,", "study.yaml:7: rows cannot be 3"),
        ("  small:", "  int-8:", "'int-8' cannot stand in a formula"),
    ],
)
def test_a_mistake_in_a_baseline_itself_is_told_with_its_line(tmp_path, old, new, words):
    (tmp_path / "space.yaml").write_text(SPACE)
    text = MODELLED.replace("OBJECTIVE", "ratio(chip.energy, large)").replace(old, new)
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises((SpecError, SpecErrors)) as caught:
        plan_of(tmp_path / "study.yaml")
    assert words in str(caught.value)


def test_baselines_without_names_are_still_a_list(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    text = MODELLED.replace("  small:", "  -").replace("  large:", "  -")
    (tmp_path / "study.yaml").write_text(text.replace("OBJECTIVE", "chip.energy"))
    assert len(plan_of(tmp_path / "study.yaml").problem.baselines) == 2
    (tmp_path / "study.yaml").write_text(text.replace("OBJECTIVE", "ratio(chip.energy, small)"))
    with pytest.raises((SpecError, SpecErrors), match="no baseline has a name"):
        plan_of(tmp_path / "study.yaml")
