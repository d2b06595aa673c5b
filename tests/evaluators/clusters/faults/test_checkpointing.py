"""Checkpoints, lazy ones and none: exact means against Monte Carlo, optima and limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.faults.checkpoint_law import (
    Segment,
    best_interval,
    daly_interval,
    young_interval,
)
from dse_evaluators.clusters.faults.checkpointing import Checkpointing

HOUR = 3600.0


def evaluated(**design):
    base = {"recovery": "synchronous", "productive_time": 24 * HOUR, "state": 3e12}
    base |= {"storage_bandwidth": 50e9, "device_mtbf": 4096 * HOUR, "devices": 1024}
    return Checkpointing().evaluate(Batch.of([base | design]))


def told(**design):
    got = evaluated(**design)
    assert not got.failures
    return {name: float(values[0]) for name, values in got.columns.items()}


def segment(work_s, write_s, redone_s, mtbf_s):
    return Segment(
        work_s=np.array([work_s]),
        write_s=np.array([write_s]),
        redone_s=np.array([redone_s]),
        mtbf_s=np.array([mtbf_s]),
    )


def drawn(one, count, jobs=20_000, seed=3):
    """Times of jobs of so many segments, each try drawn for itself."""
    rng = np.random.default_rng(seed)
    length = float(one.length_s[0])
    total = np.zeros(jobs)
    for _ in range(count):
        needed, tries = np.full(jobs, length), np.ones(jobs, dtype=bool)
        while tries.any():
            until = rng.exponential(float(one.mtbf_s[0]), jobs)
            total += np.where(tries, np.minimum(until, needed), 0.0)
            tries &= until < needed
            needed = np.full(jobs, length + float(one.redone_s[0]))
    return total


@pytest.mark.parametrize(
    "one",
    [(1275.0, 60.0, 120.0, 4 * HOUR), (3400.0, 1200.0, 600.0, 2 * HOUR), (900.0, 0.0, 2e3, 5e3)],
)
def test_mean_and_variance_of_a_segment_agree_with_monte_carlo(one):
    times = drawn(segment(*one), 1, jobs=200_000)
    assert segment(*one).mean_s()[0] == pytest.approx(times.mean(), rel=0.01)
    assert segment(*one).variance_s2()[0] == pytest.approx(times.var(), rel=0.04)


@pytest.mark.parametrize("interval", [600.0, 900.0, 1800.0])
def test_quantiles_of_a_day_agree_with_monte_carlo_within_one_percent(interval):
    count = int(24 * HOUR / interval)
    times = drawn(segment(interval, 60.0, 120.0, 4 * HOUR), count, jobs=8000)
    got = told(checkpoint_interval=interval, restart_time=120.0)
    ours = [got["job_p50"], got["job_p95"], got["job_p99"]]
    assert ours == pytest.approx(np.quantile(times, [0.5, 0.95, 0.99]), rel=0.01)


def test_neighbours_agree_with_monte_carlo_in_mean_and_quantiles():
    rng = np.random.default_rng(4)
    mtbf, cost, work, jobs = 4 * HOUR, 1800.0, 48 * HOUR, 20_000
    total, open_work = np.full(jobs, work), np.full(jobs, work)
    for _ in range(40):
        failures = rng.poisson(open_work / mtbf)
        open_work = failures * cost
        total += open_work
    got = told(
        recovery="neighbours", productive_time=work, penalty=18, iteration_time=100.0, state=1.0
    )
    assert got["job_time"] == pytest.approx(total.mean(), rel=0.005)
    ours = [got["job_p50"], got["job_p95"], got["job_p99"]]
    assert ours == pytest.approx(np.quantile(total, [0.5, 0.95, 0.99]), rel=0.01)


# An independent search, to 0.1 s.
@pytest.mark.parametrize(("write", "hours"), [(60.0, 4), (300.0, 8), (1200.0, 2)])
def test_the_best_interval_has_the_least_mean_of_all(write, hours):
    mtbf = hours * HOUR
    grid = np.arange(100.0, 20_000.0, 0.1)
    many = Segment(
        work_s=grid,
        write_s=np.full_like(grid, write),
        redone_s=np.zeros_like(grid),
        mtbf_s=np.full_like(grid, mtbf),
    )
    found = grid[np.argmin(many.mean_s() / grid)]
    assert best_interval(np.array([write]), np.array([mtbf]))[0] == pytest.approx(found, abs=0.1)


# Young 1974, and Daly 2006, equation 37, worked out by hand for C = 60 s and M = 4 h.
def test_youngs_and_dalys_intervals_are_theirs():
    write, mtbf = np.array([60.0]), np.array([4 * HOUR])
    assert young_interval(write, mtbf)[0] == pytest.approx(1314.5, abs=0.1)
    assert daly_interval(write, mtbf)[0] == pytest.approx(1274.8, abs=0.1)


@given(write=st.floats(1, 1e3), mtbf=st.floats(1e2, 1e6))
@settings(max_examples=30, deadline=None)
def test_the_best_interval_solves_its_equation(write, mtbf):
    share = best_interval(np.array([write]), np.array([mtbf]))[0] / mtbf
    assert 0 < share < 1
    left = share + np.log1p(-share)
    assert left == pytest.approx(-write / mtbf, rel=1e-3, abs=1e-12)


@given(interval=st.floats(100, 20_000), restart=st.floats(0, 2000))
@settings(max_examples=30, deadline=None)
def test_no_interval_beats_the_best_one(interval, restart):
    best = told(restart_time=restart)["job_time"]
    assert told(checkpoint_interval=interval, restart_time=restart)["job_time"] >= best * (1 - 1e-9)


def test_at_break_even_both_take_equally_long():
    saved = told(checkpoint_interval=2000.0, iteration_time=90.0, restart_time=50.0)
    near = told(
        recovery="neighbours",
        penalty=saved["break_even"],
        iteration_time=90.0,
        restart_time=50.0,
    )
    assert near["job_time"] == pytest.approx(saved["job_time"], rel=1e-9)


def test_a_fixed_interval_leaves_more_room_than_the_best_one():
    assert told(checkpoint_interval=9000.0)["break_even"] > told()["break_even_tuned"]


def test_lazy_checkpoints_that_hide_stop_nothing_and_lose_what_was_not_written():
    lazy = told(recovery="asynchronous", checkpoint_interval=1000.0, iteration_time=60.0)
    assert lazy["visible_time"] == 0.0
    exact = 24 * HOUR / 1000 * segment(1000.0, 0.0, 60.0, 4 * HOUR).mean_s()[0]
    assert lazy["job_time"] == pytest.approx(exact)


def test_faster_storage_and_rarer_failures_never_cost_more():
    assert told(storage_bandwidth=100e9)["job_time"] < told()["job_time"]
    assert told(device_mtbf=8192 * HOUR)["job_time"] < told()["job_time"]


def test_without_failures_only_writing_is_left():
    got = told(device_mtbf=1e20, checkpoint_interval=HOUR)
    assert got["overhead"] == pytest.approx(60.0 / HOUR, rel=1e-6)


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"recovery": "neighbours", "penalty": 200, "iteration_time": 90.0}, "3600 s short"),
        (
            {"recovery": "asynchronous", "state": 60e12, "checkpoint_interval": 1000.0},
            "198.656 s short",
        ),
        ({"state": 1e18}, "times the mean time between failures"),
    ],
)
def test_what_would_never_end_says_by_how_much(design, reason):
    failure = evaluated(**design).failures[0]
    assert failure.kind == "infeasible"
    assert reason in failure.reason


@pytest.mark.parametrize(
    "change",
    [
        {"productive_time": HOUR},
        {"state": 1e12},
        {"storage_bandwidth": 1e9},
        {"device_mtbf": 1e7},
        {"devices": 512},
        {"checkpoint_interval": 100.0},
        {"restart_time": 10.0},
        {"recovery": "asynchronous"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_reading_of_checkpoints_moves_the_time(change):
    assert told(**change)["job_time"] != told()["job_time"]


@pytest.mark.parametrize("change", [{"copy_bandwidth": 1e8}, {"iteration_time": 0.01}])
def test_every_reading_of_lazy_ones_moves_what_is_seen_of_them(change):
    one = {"recovery": "asynchronous", "iteration_time": 0.02}
    assert told(**(one | change))["visible_time"] != told(**one)["visible_time"]
