"""The winner of each objective and its runner-up, part by part."""

from pathlib import Path

import pytest

from dse.analysis.runner_up import MOST_LISTED, duels, totals
from dse.core.metric import Metric
from dse.study.study_engine import StudyEngine

SPACE = """
space: chips
parameters:
  rows: {ordinal: [1, 2, 4, 8]}
  cols: {ordinal: [1, 2, 4, 8]}
constraints:
  - rows * cols <= 16
"""
STUDY = """
study: chips
question: Which is fastest?
space: space.yaml
evaluators:
  chip:
    use: expression
    metrics:
      time: {formula: 64 / (rows * cols) + 0.1 * rows}
      area: {formula: rows * cols + 0.01 * cols}
objectives:
  - minimize: chip.time
  - minimize: chip.area
optimizer: exhaustive
"""


@pytest.fixture
def study(tmp_path: Path) -> StudyEngine:
    (tmp_path / "space.yaml").write_text(SPACE)
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    study = StudyEngine.open(path, storage=f"sqlite:///{tmp_path}/dse.db")
    study.run()
    return study


def test_the_runner_up_of_a_listed_space_is_the_second_best_of_all_its_designs(study: StudyEngine):
    fastest, smallest = duels(study.front, study.finished)
    assert dict(fastest.winner.design) == {"rows": 2, "cols": 8}
    assert dict(fastest.rival.design) == {"rows": 4, "cols": 4}
    assert dict(smallest.rival.design) == {"rows": 2, "cols": 1}
    assert fastest.among == "all 13 legal designs"


def test_a_runner_up_tells_what_it_changed(study: StudyEngine):
    fastest, _ = duels(study.front, study.finished)
    assert fastest.changed == {"rows": (2, 4), "cols": (8, 4)}


def test_a_large_space_is_searched_around_its_winners(study: StudyEngine, monkeypatch):
    monkeypatch.setattr("dse.analysis.runner_up.MOST_LISTED", 5)
    fastest, _ = duels(study.front, study.finished)
    assert MOST_LISTED > 5
    assert fastest.among.startswith("designs one step away")
    assert fastest.rival.losses[0] >= fastest.winner.losses[0]


def test_nobody_wins_where_nothing_was_evaluated(study: StudyEngine):
    assert duels(study.front.__class__.of(study.problem, ()), ()) == []


def test_parts_belong_to_the_total_of_their_evaluator_and_scenario():
    time, wait = Metric(name="time"), Metric(name="wait", part_of="time")
    metrics = {"a.time": time, "a.wait": wait, "b.time@chat": time, "b.wait@chat": wait}
    assert totals(metrics) == {"a.time": ["a.wait"], "b.time@chat": ["b.wait@chat"]}


def test_a_part_whose_total_nobody_tells_is_left_out():
    assert totals({"a.wait": Metric(name="wait", part_of="time")}) == {}


def test_a_neighbour_that_beats_a_study_that_ended_early_is_told(study: StudyEngine, monkeypatch):
    monkeypatch.setattr("dse.analysis.runner_up.MOST_LISTED", 5)
    slow = [trial for trial in study.finished if dict(trial.design) == {"rows": 2, "cols": 4}]
    (fastest, _) = duels(study.front.__class__.of(study.problem, slow), slow)
    assert fastest.beaten
    assert dict(fastest.rival.design) in ({"rows": 4, "cols": 4}, {"rows": 2, "cols": 8})
