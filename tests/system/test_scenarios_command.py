"""A study over scenarios, from its file to the tables: who wins where is found and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows: {ordinal: [1, 2, 4, 8]}
"""

# Time of 1, 2, 4, 8 rows under chat: 5, 4, 5, 8.5 s; under batch: 65, 34, 20, 16 s; the weighted
# mean of both: 20, 11.5, 8.75, 10.375 s.
STUDY = """
study: loads
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: work / rows + rows * 1 s, unit: s}}}
scenarios:
  chat:  {weight: 3, values: {work: 4 s}}
  batch: {weight: 1, values: {work: 64 s}}
objectives:
  - minimize: mean(chip.time)
"""


def study_in(folder: Path, text: str = STUDY, storage=None) -> StudyEngine:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(text)
    return StudyEngine.open(folder / "study.yaml", storage=storage or MemoryStorage("memory://"))


def rows_of(study: StudyEngine, number: int) -> int:
    return study.trials[number].design["rows"]


def test_the_exact_winner_of_each_scenario_is_in_the_record(tmp_path):
    study = study_in(tmp_path)
    study.run()
    (contest,) = study.contrast.contests
    won = {one.scenario: rows_of(study, one.winner) for one in contest.standings}
    assert won == {"chat": 2, "batch": 8}
    assert rows_of(study, contest.chosen) == 4
    assert [rows_of(study, trial.number) for trial in study.front.trials] == [4]


def test_what_the_chosen_design_loses_in_a_scenario_is_told(tmp_path):
    study = study_in(tmp_path)
    study.run()
    (contest,) = study.contrast.contests
    told = {s.scenario: (s.value, s.chosen_value, s.behind) for s in contest.standings}
    assert told["chat"] == pytest.approx((4.0, 5.0, 0.25))
    assert told["batch"] == pytest.approx((16.0, 20.0, 0.25))


def test_running_on_adds_nothing_to_what_is_complete(tmp_path):
    storage = MemoryStorage("memory://")
    study_in(tmp_path, storage=storage).run()
    first = storage.trials("loads")
    events = storage.events("loads")
    study_in(tmp_path, storage=storage).run()
    assert storage.trials("loads") == first
    assert storage.events("loads") == events


def test_each_scenario_has_its_own_exact_front(tmp_path):
    text = STUDY.replace("unit: s}}}", "unit: s}, area: {formula: rows}}}")
    study = study_in(tmp_path, text + "  - minimize: worst(chip.area)\n")
    study.run()
    fronts = {
        name: {rows_of(study, number) for number in numbers}
        for name, numbers in study.contrast.fronts.items()
    }
    assert fronts == {"chat": {1, 2}, "batch": {1, 2, 4, 8}}
    assert {rows_of(study, number) for number in study.contrast.everywhere} == {1, 2}


def test_the_command_tells_where_the_winner_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    runner = CliRunner()
    assert runner.invoke(app, ["run", "study.yaml"]).exit_code == 0
    shown = runner.invoke(app, ["front", "loads"]).output
    assert "the winner changes: trial 1 under chat; trial 2 under batch" in shown
    told = json.loads(runner.invoke(app, ["front", "loads", "--format", "json"]).output)
    assert told["scenarios"]["weights"] == {"chat": 0.75, "batch": 0.25}
    assert told["scenarios"]["objectives"][0]["changes"] is True
    assert runner.invoke(app, ["report", "loads", "-o", "page.html"]).exit_code == 0
    assert "Where the winner changes" in (tmp_path / "page.html").read_text()


def test_a_study_without_scenarios_says_nothing_of_them(tmp_path):
    text = STUDY.replace("mean(chip.time)", "chip.time").replace("work /", "4 s /")
    start, end = text.index("scenarios:"), text.index("objectives:")
    study = study_in(tmp_path, text[:start] + text[end:])
    study.run()
    assert study.contrast is None
