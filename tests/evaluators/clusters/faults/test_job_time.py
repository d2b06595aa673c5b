"""Quantiles of steps and jobs against Monte Carlo, known maxima and their limits."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.faults.job_time import JobTime
from dse_evaluators.clusters.faults.step_time_spread import QUANTILES, Ranks, at, lateness

CHANCES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def told(**design):
    base = {"tp": 4, "pp": 4, "dp": 4, "microbatches": 8, "compute_time": 3.0}
    got = JobTime().evaluate(Batch.of([base | design]))
    return {name: float(values[0]) for name, values in got.columns.items()}


def drawn(design, jobs=4000, seed=7):
    """Times of jobs, drawn rank by rank and step by step."""
    rng = np.random.default_rng(seed)
    shape = (jobs, design["dp"], design["pp"], design["tp"])
    keeps = design["persistence"]
    fixed = [rng.standard_normal(shape), rng.standard_normal(shape)]
    total = np.zeros(jobs)
    for _ in range(design["steps"]):
        compute, exchange = (
            np.sqrt(keeps) * one + np.sqrt(1 - keeps) * rng.standard_normal(shape) for one in fixed
        )
        rank_s = design["compute_time"] * (1 + design["compute_spread"] * compute)
        rank_s += design["exchange_time"] * (1 + design["exchange_spread"] * exchange)
        stage_s = rank_s.max(axis=-1) / design["microbatches"]
        part = 1 / design["interleave"]
        replica_s = part * stage_s.sum(axis=-1)
        replica_s += (design["microbatches"] - part) * stage_s.max(axis=-1)
        total += replica_s.max(axis=-1)
    return total


def design(tp, pp, dp, microbatches, **others):
    base = {"tp": tp, "pp": pp, "dp": dp, "microbatches": microbatches}
    base |= {"compute_time": 2.0, "compute_spread": 0.05, "exchange_time": 0.6}
    return base | {"exchange_spread": 0.2, "persistence": 0.0, "steps": 1, "interleave": 1} | others


DESIGNS = {
    "one device": design(1, 1, 1, 4),
    "tensor": design(8, 1, 1, 4),
    "pipeline": design(1, 8, 1, 32),
    "two stages, one microbatch": design(1, 2, 1, 1),
    "many stages, one microbatch": design(1, 14, 50, 1),
    "interleaved": design(2, 8, 2, 16, interleave=2),
    "replicas": design(1, 1, 128, 1),
    "all": design(4, 4, 16, 8),
    "ten steps, half lasts": design(4, 4, 4, 8, steps=10, persistence=0.5),
    "ten steps, all lasts": design(2, 4, 4, 8, steps=10, persistence=1.0),
    "ten steps, nothing lasts": design(2, 4, 4, 8, steps=10),
    "many ranks, half lasts": design(1, 1, 256, 1, steps=10, persistence=0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_quantiles_agree_with_monte_carlo_within_one_percent(name):
    times = drawn(DESIGNS[name])
    got = told(**DESIGNS[name])
    ours = [got[f"job_{quantile}"] for quantile in CHANCES]
    assert ours == pytest.approx(np.quantile(times, list(CHANCES.values())), rel=0.01)
    assert got["job_time"] == pytest.approx(times.mean(), rel=0.005)
    assert got["job_cvar95"] == pytest.approx(np.sort(times)[-200:].mean(), rel=0.01)


@pytest.mark.slow
def test_the_chance_to_be_late_agrees_with_monte_carlo():
    one = DESIGNS["ten steps, half lasts"]
    limit = float(np.quantile(drawn(one, seed=1), 0.9))
    assert told(**one, deadline=limit)["late"] == pytest.approx(0.1, abs=0.02)


# Tippett, On the Extreme Individuals and the Range of Samples, 1925: the mean of the largest of
# 10, 100 and 1,000 normals, in standard deviations.
@pytest.mark.parametrize(("ranks", "largest"), [(10, 1.53875), (100, 2.50759), (1000, 3.24144)])
@pytest.mark.parametrize("axis", ["tp", "dp"])
def test_the_mean_of_the_largest_is_tippetts(ranks, largest, axis):
    one = {"tp": 1, "pp": 1, "dp": 1, "microbatches": 1, axis: ranks}
    got = told(**one, compute_time=1.0, compute_spread=0.1)
    assert got["slowdown"] == pytest.approx(1 + 0.1 * largest, abs=2e-4)


@pytest.mark.parametrize("ranks", [10, 1000, 65536])
def test_the_quantiles_of_the_largest_are_roots_of_the_normals(ranks):
    one = np.ones(1)
    late = lateness(
        Ranks(tensor=one, pipeline=one, data=one * ranks, microbatches=one, interleave=one)
    )
    quantiles = late.mean[:, None] + late.deviation[:, None] * late.shape
    # Phi(x) ** ranks is what it should be, by a function that is not the model's.
    normal = _normal(at(quantiles, QUANTILES["p95"]))
    assert ranks * np.log(normal) == pytest.approx(np.log(0.95), rel=0.02)


def _normal(score):
    return 0.5 * (1 + erf(float(score[0]) / sqrt(2)))


def test_devices_that_are_alike_take_the_nominal_time_of_the_schedule():
    got = told(compute_spread=0.0, exchange_spread=0.0, exchange_time=1.0, data_time=0.5, steps=10)
    nominal = 4.0 * (8 + 3) / 8 + 0.5
    exact = [got[name] for name in ("step_time", "step_p50", "step_p99")]
    assert exact == pytest.approx([nominal] * 3)
    assert [got["job_p99"], got["job_cvar95"]] == pytest.approx([10 * nominal] * 2)
    assert got["late"] == 0.0


@given(
    tp=st.sampled_from([1, 2, 8]),
    pp=st.integers(1, 16),
    dp=st.integers(1, 512),
    spread=st.floats(0.01, 0.2),
    keeps=st.floats(0, 1),
)
@settings(max_examples=30, deadline=None)
def test_quantiles_rise_and_a_job_that_repeats_itself_is_never_surer(tp, pp, dp, spread, keeps):
    one = {"tp": tp, "pp": pp, "dp": dp, "compute_spread": spread, "steps": 100}
    some, all_of_it = told(**one, persistence=keeps), told(**one, persistence=1.0)
    assert some["job_p50"] < some["job_p95"] < some["job_p99"]
    assert some["job_p95"] < some["job_cvar95"]
    assert some["job_p99"] <= all_of_it["job_p99"] * (1 + 1e-9)
    assert some["job_time"] == pytest.approx(all_of_it["job_time"])


@pytest.mark.parametrize("axis", ["tp", "pp", "dp"])
def test_more_devices_that_wait_for_one_another_wait_longer(axis):
    assert told(**{axis: 8})["waiting_time"] > told(**{axis: 4})["waiting_time"]


@pytest.mark.parametrize(
    "change",
    [
        {"tp": 8},
        {"pp": 8},
        {"dp": 8},
        {"microbatches": 16},
        {"interleave": 2},
        {"compute_time": 4.0},
        {"exchange_time": 1.0},
        {"data_time": 1.0},
        {"compute_spread": 0.1},
        {"exchange_time": 1.0, "exchange_spread": 0.3},
        {"persistence": 0.5, "steps": 10},
        {"steps": 100},
    ],
    ids=lambda change: list(change)[-1],
)
def test_every_reading_moves_the_p95_of_the_job(change):
    assert told(**change)["job_p95"] != told()["job_p95"]


def test_a_later_deadline_is_missed_less():
    assert told(deadline=4.3)["late"] > told(deadline=4.6)["late"] > 0.0


def test_an_option_settles_a_reading_and_one_that_cannot_be_is_refused():
    evaluator = JobTime(compute_spread=0.1, deadline="2 h")
    assert not {"compute_spread", "deadline"} & evaluator.optional
    with pytest.raises(SpecError, match=r"compute_spread cannot be 0\.5"):
        JobTime(compute_spread=0.5)
