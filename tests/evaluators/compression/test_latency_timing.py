"""The median of timed rounds, and its error."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dse.evaluation.timing.median_interval import median_error
from dse_evaluators.compression.timing import Timing, time_call


def test_the_error_of_the_median_is_that_of_a_normal_sample():
    samples = np.random.default_rng(0).normal(size=(2000, 400))
    stated = np.mean([median_error(row) for row in samples])
    # sqrt(pi / 2 n): the median's error for a normal distribution of unit deviation; the ranks
    # around it are rounded outwards, which adds up to a tenth at this n.
    assert stated == pytest.approx(np.sqrt(np.pi / 2 / 400), rel=0.1)


def test_samples_that_agree_have_no_error():
    assert median_error(np.full(20, 3.0)) == 0.0


def test_one_disturbed_sample_of_many_moves_the_error_not_at_all():
    quiet = np.linspace(1.0, 1.1, 21)
    disturbed = np.append(quiet[:-1], 50.0)
    assert median_error(disturbed) == median_error(quiet)


def test_a_call_takes_as_long_as_the_clock_moves_meanwhile(monkeypatch):
    now_ns, calls = [0], []
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now_ns[0])
    monkeypatch.setattr(time, "perf_counter", lambda: now_ns[0] * 1e-9)

    def call():
        calls.append(now_ns[0])
        now_ns[0] += 2_000_000

    found = time_call(call, Timing(warmup=1, repeats=4, batch=1))
    assert found == (2e-3, 0.0)
    assert len(calls) == 1 + 4 * 3  # a round is of five milliseconds
