"""Rewards of reinforcement learning: the law, fits to half of a run, and wrong files."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.scaling.reinforcement import Reinforcement
from dse_evaluators.scaling.reward_curve import (
    RewardCurve,
    RewardRun,
    compute_reward,
    extrapolate,
    fit_reward,
)

LAW = RewardCurve(asymptote=0.61, exponent=1.5, midpoint=2500.0, start=0.2)
COMPUTE = np.linspace(1500, 16000, 60)


def run_of(seed, noise=0.005):
    drawn = np.random.default_rng(seed).normal(0, noise, COMPUTE.size)
    return RewardRun(
        recipe="r",
        start=LAW.start,
        compute=COMPUTE,
        reward=LAW.predict(COMPUTE) + drawn,
        where="runs.csv:2",
    )


def test_half_of_the_gain_is_reached_at_the_midpoint():
    assert compute_reward(np.array([2500.0]), 0.61, 1.5, 2500.0, 0.2)[0] == pytest.approx(0.405)


@pytest.mark.parametrize("seed", range(4))
def test_half_of_the_compute_predicts_the_rest_within_two_hundredths(seed):
    run = run_of(seed)
    beyond = run.compute > 0.5 * run.compute[-1]
    predicted = extrapolate(run, 0.5) + run.reward[beyond]
    off = predicted - LAW.predict(run.compute[beyond])
    assert np.abs(off).max() <= 0.02


def test_points_without_noise_give_the_curve_back():
    found = fit_reward(run_of(0, noise=0.0))
    assert found.asymptote == pytest.approx(LAW.asymptote, abs=1e-3)
    assert found.midpoint == pytest.approx(LAW.midpoint, rel=0.01)


def write(tmp_path, rows):
    file = tmp_path / "runs.csv"
    file.write_text("\n".join(["recipe,compute,reward", *rows]))
    return str(file)


def test_each_recipe_of_a_file_has_its_curve(tmp_path):
    fast = RewardCurve(asymptote=0.5, exponent=2.0, midpoint=1000.0, start=0.2)
    rows = [
        f"{name},{spent},{one.predict(np.array([spent]))[0]}"
        for name, one in (("fast", fast), ("high", LAW))
        for spent in COMPUTE[::3].tolist()
    ]
    made = Reinforcement(file=write(tmp_path, rows))
    designs = [{"recipe": name, "compute": c} for name in ("fast", "high") for c in (1500, 12000)]
    reward = made.evaluate(Batch.of(designs)).columns["reward"]
    assert reward[0] > reward[2]
    assert reward[1] < reward[3]
    assert len(made.notes) == 2
    assert made.evaluate(Batch.of(designs)).columns["extrapolation_error"].max() < 0.02


def test_the_reward_before_training_takes_the_place_of_a_point(tmp_path):
    rows = [f"r,{spent},{LAW.predict(np.array([spent]))[0]}" for spent in range(1000, 11000, 1000)]
    assert Reinforcement(file=write(tmp_path, ["r,0,0.2", *rows])).notes
    with pytest.raises(SpecError, match="a curve needs 6 before"):
        Reinforcement(file=write(tmp_path, rows))


def test_a_curve_that_is_stated_has_no_extrapolation_error():
    assert "extrapolation_error" not in Reinforcement().provides


@pytest.mark.parametrize(
    ("rows", "line", "problem"),
    [
        (["r,-1,0.3"], 2, "compute is '-1'"),
        (["r,0,0.3", "r,0,0.3"], 3, "two rewards before training"),
        (["r,1,0.3", "r,2,much"], 3, "no finite number"),
        (["r,1,inf"], 2, "no finite number"),
        (["r,1,"], 2, "'reward' is blank"),
        (["r,1"], 2, "number of cells"),
        ([",1,0.3"], 2, "'recipe' is blank"),
        (["r,1,0.3", "r,2,0.4"], 2, "points to fit"),
        ([], 2, "no rows"),
    ],
)
def test_a_wrong_file_of_runs_is_refused_with_its_line(rows, line, problem, tmp_path):
    with pytest.raises(SpecError, match=problem) as caught:
        Reinforcement(file=write(tmp_path, rows))
    assert caught.value.where.endswith(f"runs.csv:{line}")


def test_a_missing_column_is_refused(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("recipe,compute,rewards\nr,1,0.3\n")
    with pytest.raises(SpecError, match="no column 'reward'"):
        Reinforcement(file=str(file))
