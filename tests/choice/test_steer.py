"""``dse resume --toward favourite`` and ``study.steer``: trials spent on the user's favourite."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

from dse import Metric, Study, Trial, evaluator
from dse.cli.app import app
from dse.core.preference_answers import PreferenceAnswer, Steering, answers_at, read_steering
from dse.core.trial import Event
from dse.core.user_events import renumber_trials
from dse.core.utility_posterior import LearntUtility
from dse.errors import StudyError
from dse.storage.memory import MemoryStorage
from dse.study.replay import Replay

ANGLES = np.linspace(0, np.pi / 2, 30)
ARC = 1 - np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
"""Front of thirty designs on a quarter of a circle; the first one is best in objective 0."""


@evaluator(Metric("time", goal="minimize"), Metric("area", goal="minimize"))
def kernel(x: float, y: float, z: float) -> dict[str, float]:
    away = 1 + 3 * ((y - 0.3) ** 2 + (z - 0.7) ** 2) + 0.3 * (y - 0.3) * x
    return {"time": x, "area": away * (1 - np.sqrt(x / away))}


def utility(trial: Trial) -> float:
    """Return the utility of a simulated user: a weighted maximum of both objectives."""
    return -max(0.7 * trial.metrics["kernel.time"], 0.3 * trial.metrics["kernel.area"])


def prefer(first: Trial, second: Trial) -> str:
    return "first" if utility(first) > utility(second) else "second"


def study_of(storage: MemoryStorage, seed: int = 0, optimizer: str = "grey-box") -> Study:
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}
    return Study(
        "kernel",
        space,
        [kernel],
        storage=storage,
        optimizer=optimizer,
        seed=seed,
        executor="serial",
    )


def chosen_after_ten(seed: int, optimizer: str = "grey-box") -> Study:
    """Return a study of ten measurements with the answers of the simulated user."""
    study = study_of(MemoryStorage(), seed, optimizer)
    study.run(measurements=10, progress=False)
    study.choose(prefer, questions=5)
    return study


def designs(study: Study) -> list[object]:
    return [trial.design for trial in study.trials]


@cache
def steered(seed: int) -> Study:
    """Return such a study that was steered for six further measurements."""
    study = chosen_after_ten(seed)
    study.steer("favourite")
    study.run(measurements=16, progress=False)
    return study


def plain(seed: int) -> Study:
    study = chosen_after_ten(seed)
    study.run(measurements=16, progress=False)
    return study


def best(study: Study) -> float:
    return max(utility(trial) for trial in study.trials)


def test_the_best_utility_is_higher_than_without_steering():
    gains = [best(steered(seed)) - best(plain(seed)) for seed in range(2)]
    assert np.mean(gains) > 0.003
    assert min(gains) > 0


def test_a_resumed_study_asks_for_the_same_designs():
    study = chosen_after_ten(0)
    study.steer("favourite")
    study.run(measurements=12, progress=False)
    resumed = Study.load("kernel", study.engine.storage, evaluators=[kernel])
    resumed.run(measurements=16, progress=False)
    assert designs(resumed) == designs(steered(0))


def test_the_record_replays_exactly():
    proof = Replay(steered(0).engine).proof()
    assert proof.mismatch is None
    assert proof.trials == 16


def test_later_answers_do_not_change_what_was_asked_before():
    study = chosen_after_ten(1)
    study.steer("favourite")
    study.run(measurements=13, progress=False)
    first, second = study.front[0].number, study.front[-1].number
    study.prefer(second, first)
    study.steer("favourite")
    study.run(measurements=15, progress=False)
    assert [one.first for one in read_steering(study.engine.events)] == [10, 13]
    assert Replay(study.engine).proof().mismatch is None


def test_toward_the_front_again_no_answer_steers():
    study = chosen_after_ten(2)
    study.steer("favourite")
    study.steer("favourite")  # no second event, as nothing changes
    study.steer("front")
    steering = read_steering(study.engine.events)
    assert [bool(one.answers) for one in steering] == [True, False]
    study.run(measurements=13, progress=False)
    twin = chosen_after_ten(2)
    twin.run(measurements=13, progress=False)
    assert designs(study) == designs(twin)


def test_the_command_steers_and_the_event_names_the_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text("space: s\nparameters: {n: {integer: [1, 60]}}\n")
    (tmp_path / "study.yaml").write_text(
        "study: s\nspace: space.yaml\nexecutor: serial\noptimizer: grey-box\n"
        "evaluators: {m: {use: table, file: t.csv, kind: measured, metrics: {a: '', b: ''}}}\n"
        "objectives: [minimize: m.a, minimize: m.b]\nbudget: {measurements: 8}\n"
    )
    rows = [f"{n},{n},{(n - 60) ** 2}" for n in range(1, 61)]
    (tmp_path / "t.csv").write_text("\n".join(["n,a,b", *rows]) + "\n")
    run = CliRunner().invoke
    assert run(app, ["run", "study.yaml", "--quiet"]).exit_code == 0
    unanswered = run(app, ["resume", "s", "--toward", "favourite"])
    assert "dse choose s" in unanswered.exception.hint
    low, high = (trial.number for trial in (min_of("m.a"), min_of("m.b")))
    assert run(app, ["choose", "s", "--prefer", f"{low}:{high}"]).exit_code == 0
    words = ["resume", "s", "--toward", "favourite", "--measurements", "12", "--quiet"]
    assert run(app, words).exit_code == 0
    text = f"from trial 8: toward the favourite, as trial {low} is preferred to trial {high}"
    assert text in [event.text for event in Study.load("s").engine.events]
    added = [trial.design["n"] for trial in Study.load("s").trials][8:]
    assert np.mean(added) < 30


def min_of(metric: str) -> Trial:
    return min(Study.load("s").trials, key=lambda trial: trial.metrics[metric])


@pytest.mark.parametrize(
    ("optimizer", "toward", "says"),
    [
        ("random", "favourite", "the optimizer 'random' cannot search for a favourite"),
        ("grey-box", "favorite", "trials are not spent toward 'favorite'"),
    ],
)
def test_what_cannot_be_steered_is_refused_and_records_nothing(optimizer, toward, says):
    study = chosen_after_ten(0, optimizer)
    with pytest.raises(StudyError, match=says) as caught:
        study.steer(toward)
    assert "grey-box" in caught.value.hint or "favourite" in caught.value.hint
    assert read_steering(study.engine.events) == []


def test_a_recorded_wish_is_read_as_it_was_written():
    answers = (
        PreferenceAnswer(number=0, first=3, second=7),
        PreferenceAnswer(number=0, first=2, second=4, equal=True),
    )
    wishes = [Steering(first=9, answers=answers), Steering(first=12)]
    events = [Event(kind="toward", text=one.text, told=8) for one in wishes]
    assert read_steering(events) == wishes
    assert answers_at(wishes, 8) == ()
    assert answers_at(wishes, 11) == answers
    assert answers_at(wishes, 12) == ()


def test_a_wish_is_renumbered_with_its_trials_or_left_out():
    wish = Steering(first=9, answers=(PreferenceAnswer(number=0, first=3, second=7),))
    event = Event(kind="toward", text=wish.text, told=9)
    (moved,) = renumber_trials([event], {3: 1, 7: 2, 9: 4})
    assert moved.text == "from trial 4: toward the favourite, as trial 1 is preferred to trial 2"
    assert list(renumber_trials([event], {3: 1, 9: 4})) == []


def test_gains_are_largest_where_the_answers_point():
    answers = [(5, 20, "first"), (2, 12, "first")]  # objective 0 matters more
    utility = LearntUtility.of(ARC, answers, ARC.min(axis=0))
    shifted = utility.gains(0.95 * ARC).mean(axis=0)
    assert shifted[:8].mean() > 2 * shifted[-8:].mean()
    assert utility.gains(ARC).max() == pytest.approx(0.0, abs=1e-12)
    assert utility.gains(1.1 * ARC + 0.1).max() == 0.0
