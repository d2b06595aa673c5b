"""The panel of a study that has really run, at several widths."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from dse.core.pareto import ParetoSet
from dse.schema.study.budget import Budget
from dse.services.progress.panel import StudyPanel
from dse.services.progress.screen import EVERY_S, LineDisplay
from dse.services.progress.watch import CLOUD, ProgressTracker
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  x: {real: [0, 1]}
  y: {real: [0, 1]}
"""

STUDY = """
study: drawn
space: space.yaml
evaluators:
  m:
    use: expression
    metrics:
      a: {formula: 1 s * x + 1 s * y, unit: s}
      b: {formula: 1 J * (1 - x) + 1 J * y, unit: J}
      c: {formula: x * y}
objectives:
OBJECTIVES
constraints: [m.c <= 0.3]
optimizer: random
budget: {trials: 60}
seed: 5
"""

OBJECTIVES = ["- minimize: m.a", "- maximize: m.b", "- minimize: m.c"]


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(scope="module", params=[1, 2, 3])
def study(request, tmp_path_factory) -> StudyEngine:
    folder = tmp_path_factory.mktemp("panel")
    (folder / "space.yaml").write_text(SPACE)
    asked = "\n".join(f"  {line}" for line in OBJECTIVES[: request.param])
    text = STUDY.replace("OBJECTIVES", asked)
    (folder / "study.yaml").write_text(text)
    return StudyEngine.open(folder / "study.yaml", storage="memory://")


@pytest.fixture
def run(study):
    """The panel of the study, its clock, and the trials as they came."""
    clock, trials = Clock(), []
    again = StudyEngine.open(study.plan.path, storage="memory://")
    panel = StudyPanel(again, Budget(trials=60), clock=clock)

    def finished(trial):
        clock.now_s += 0.5
        trials.append(trial)
        panel.finished(trial)

    again.run(on_finished=finished)
    panel.look(finally_=True)
    return SimpleNamespace(panel=panel, clock=clock, trials=trials, study=again)


def printed(content, width: int, *, height: int = 30, **options) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, **options)
    console.print(content)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [12, 36, 40, 60, 80, 200])
@pytest.mark.parametrize("height", [5, 18, 24, 60])
def test_a_panel_is_no_larger_than_its_terminal(run, width, height) -> None:
    lines = printed(run.panel, width, height=height).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= height


def test_a_small_terminal_gets_a_line(run) -> None:
    assert len(printed(run.panel, 80, height=10).splitlines()) == 1
    assert len(printed(run.panel, 30, height=40).splitlines()) == 1


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_tells_how_far_how_good_and_what_is_drawn(run, width) -> None:
    text = " ".join(printed(run.panel, width).split())
    assert "60/60 trials" in text
    assert "m.a" in text
    assert "is better" in text


def test_counts_are_those_of_the_record(run) -> None:
    watch = ProgressTracker(run.study.problem, run.study.finished)
    front = ParetoSet.of(run.study.problem, run.study.finished)
    assert watch.ended == 60
    assert len(watch.front) == len(front.trials)
    assert watch.hypervolume == front.hypervolume
    assert watch.hypervolume_share == (front.hypervolume_share or 1.0)
    answers = int(run.study.problem.feasible(run.study.finished).sum())
    assert watch.outside == 60 - answers
    assert watch.outside > 0
    assert f"{watch.outside} outside limits" in run.panel.line


def test_it_makes_no_difference_in_how_many_looks_trials_are_seen(run) -> None:
    slowly = ProgressTracker(run.study.problem)
    for trial in run.trials:
        slowly.finished(trial)
        slowly.catch_up(finally_=True)
    front = ParetoSet.of(run.study.problem, run.trials)
    assert slowly.hypervolume == front.hypervolume
    assert len(slowly.front) == len(front.trials)


def test_how_long_ago_it_got_better_is_told(run) -> None:
    assert "just now" in printed(run.panel, 100)
    run.clock.now_s += 75
    assert "1 min 15 s ago" in printed(run.panel, 100)


def test_the_front_is_told_from_others_without_colours(run) -> None:
    plain = printed(run.panel, 80, force_terminal=True, no_color=True, color_system="truecolor")
    assert "38;" not in plain
    assert "\x1b[1m" in plain
    assert "\x1b[2m" in plain


def test_a_trial_without_any_answer_before_is_no_trouble(study) -> None:
    panel = StudyPanel(StudyEngine.open(study.plan.path, storage="memory://"), Budget(trials=60))
    panel.look()
    assert "no design is within all limits yet" in printed(panel, 80)


def test_of_very_many_answers_a_bounded_number_is_remembered(run) -> None:
    watch = ProgressTracker(run.study.problem)
    for _ in range(1000):
        for trial in run.trials:
            watch.finished(trial)
    watch.catch_up()
    assert watch.ended == 60_000
    assert CLOUD / 4 < len(watch.cloud) <= CLOUD


def test_a_trial_costs_the_loop_next_to_nothing(run) -> None:
    watch, trial = ProgressTracker(run.study.problem), run.trials[0]
    calls: list[str] = []
    sys.setprofile(lambda _frame, event, _: calls.append(event))
    try:
        for _ in range(1000):
            watch.finished(trial)
    finally:
        sys.setprofile(None)
    assert calls.count("call") == 1000  # one call a trial, of which nothing is learnt yet
    assert calls.count("c_call") <= 1001  # and one that keeps it


def test_a_stream_that_is_no_terminal_gets_a_line_now_and_then(run) -> None:
    file, clock = io.StringIO(), Clock()
    lines = LineDisplay(Console(file=file), clock=clock)
    lines.show(run.panel)
    lines.tick()
    assert file.getvalue() == ""
    clock.now_s += EVERY_S
    lines.tick()
    lines.tick()
    assert file.getvalue().count("60/60 trials") == 1
    assert len(file.getvalue().splitlines()) == 1


def test_the_best_of_one_objective_falls_step_by_step(run) -> None:
    watch = ProgressTracker(run.study.problem, run.study.finished)
    assert (np.diff(watch.steps[:, 1]) < 0).all()
    assert (np.diff(watch.steps[:, 0]) > 0).all()
    assert len(watch.steps) == 0 or watch.steps[-1, 1] == watch.front.min()
