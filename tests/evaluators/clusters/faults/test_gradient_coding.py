"""Loads of gradient codes as printed, and waits against Monte Carlo and sums by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.faults.gradient_codes import Code, duty
from dse_evaluators.clusters.faults.gradient_coding import GradientCoding


def evaluated(**design):
    base = {"scheme": "cyclic", "workers": 12, "stragglers": 2, "work_time": 60.0}
    base |= {"straggling_time": 4.0, "straggling": 0.3, "exchange_time": 1.0}
    return GradientCoding().evaluate(Batch.of([base | design]))


def told(**design):
    got = evaluated(**design)
    assert not got.failures
    return {name: float(values[0]) for name, values in got.columns.items()}


# Krishnan et al., Sequential Gradient Coding, 2023: the loads of its experiment on 256 workers,
# in the digits of print.
@pytest.mark.parametrize(
    ("scheme", "stragglers", "burst", "window", "load"),
    [
        ("uncoded", 0, 1, 2, 0.0039),
        ("cyclic", 15, 1, 2, 0.0625),
        ("sr-sgc", 23, 2, 3, 0.0508),
        ("m-sgc", 27, 1, 2, 0.0075),
    ],
)
def test_loads_are_those_in_print(scheme, stragglers, burst, window, load):
    code = Code(workers=256, stragglers=stragglers, burst=burst, window=window)
    assert float(duty(scheme, code).load) == pytest.approx(load, abs=5e-5)


@given(workers=st.integers(2, 64), stragglers=st.integers(0, 63))
def test_no_code_within_a_round_asks_less_than_the_bound_or_more_than_all(workers, stragglers):
    code = Code(workers=workers, stragglers=min(stragglers, workers - 1))
    load = duty("cyclic", code).load
    assert Fraction(1, workers) <= load <= 1
    assert load == Fraction(code.stragglers + 1, workers)


@given(stragglers=st.integers(1, 200), burst=st.integers(1, 5), more=st.integers(1, 5))
def test_codes_over_rounds_ask_less_than_one_within(stragglers, burst, more):
    code = Code(workers=256, stragglers=stragglers, burst=burst, window=burst * more + 1)
    within = duty("cyclic", code).load
    assert duty("sr-sgc", code).load <= within
    assert duty("m-sgc", code).load <= within


def drawn(grouped, rounds=60_000):
    rng = np.random.default_rng(2)
    times = rng.exponential(size=(rounds, 12))
    firsts = times.reshape(rounds, 4, 3).min(axis=2).max(axis=1)
    return firsts if grouped else np.sort(times, axis=1)[:, 9]


@pytest.mark.parametrize("scheme", ["cyclic", "replicated"])
def test_waits_agree_with_monte_carlo_within_one_percent(scheme):
    work = 60.0 * 3 / 12
    times = work + 1.0 + (4.0 + 0.3 * work) * drawn(scheme == "replicated")
    got = told(scheme=scheme)
    ours = [got["round_time"], got["round_p50"], got["round_p95"], got["round_p99"]]
    assert ours == pytest.approx([times.mean(), *np.quantile(times, [0.5, 0.95, 0.99])], rel=0.01)


def test_means_are_differences_of_harmonic_numbers():
    plain = {"work_time": 12.0, "straggling_time": 1.0, "straggling": 0.0}
    ten = sum(1 / k for k in range(3, 13))
    assert told(**plain)["straggling_time"] == pytest.approx(ten)
    four = (1 + 1 / 2 + 1 / 3 + 1 / 4) / 3
    assert told(**plain, scheme="replicated")["straggling_time"] == pytest.approx(four)


def test_without_a_code_all_are_waited_for():
    got = told(scheme="uncoded", straggling=0.0)
    assert got["straggling_time"] == pytest.approx(4.0 * sum(1 / k for k in range(1, 13)))
    assert got["load"] == pytest.approx(1 / 12)


def test_gradients_that_are_ignored_are_missing():
    got = told(scheme="ignoring")
    assert got["gradient_share"] == pytest.approx(10 / 12)
    assert got["gradient_time"] == pytest.approx(got["round_time"] * 12 / 10)


@given(stragglers=st.sampled_from([0, 1, 2, 3, 5, 11]))
@settings(max_examples=6, deadline=None)
def test_copies_are_never_waited_for_longer_than_a_cyclic_code(stragglers):
    copies = told(scheme="replicated", stragglers=stragglers)
    cyclic = told(scheme="cyclic", stragglers=stragglers)
    assert copies["round_time"] <= cyclic["round_time"] * (1 + 1e-12)
    assert copies["round_p99"] <= cyclic["round_p99"] * (1 + 1e-9)


def test_more_stragglers_tolerated_cost_more_work_and_less_waiting():
    few, many = told(stragglers=1, straggling=0.0), told(stragglers=5, straggling=0.0)
    assert many["computing_time"] > few["computing_time"]
    assert many["straggling_time"] < few["straggling_time"]


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"stragglers": 12}, "12 stragglers of 12 workers: 1 too many"),
        ({"scheme": "replicated", "stragglers": 4}, "groups of 5 leave 2 over"),
        (
            {"scheme": "sr-sgc", "burst": 2, "window": 4},
            "not 1 plus a positive multiple of burst 2",
        ),
        ({"scheme": "m-sgc", "burst": 3, "window": 2}, "2 too long"),
    ],
)
def test_a_code_that_cannot_be_says_why(design, reason):
    failure = evaluated(**design).failures[0]
    assert failure.kind == "infeasible"
    assert reason in failure.reason


@pytest.mark.parametrize(
    "change",
    [
        {"workers": 24},
        {"stragglers": 3},
        {"work_time": 30.0},
        {"straggling_time": 1.0},
        {"straggling": 0.0},
        {"exchange_time": 0.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_reading_moves_the_round(change):
    assert told(**change)["round_time"] != told()["round_time"]


@pytest.mark.parametrize("change", [{"burst": 1}, {"window": 5}])
def test_burst_and_window_move_the_load_of_codes_over_rounds(change):
    one = {"scheme": "m-sgc", "burst": 2, "window": 3}
    assert told(**(one | change))["load"] != told(**one)["load"]
