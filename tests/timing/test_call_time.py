"""Timing of a call: warm-up, limits, and readings that other programs disturb."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from dse import time_call
from dse.errors import EvaluationError
from dse.evaluation.timing.interference import sample_load
from dse.evaluation.timing.pinning import pinned

needs_load = pytest.mark.skipif(sample_load() is None, reason="the system reports no load")


@pytest.fixture
def moved_clock(monkeypatch) -> Callable[[float], None]:
    now_s = [1000.0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: round(now_s[0] * 1e9))
    monkeypatch.setattr(time, "perf_counter", lambda: now_s[0])

    def pass_time(seconds: float) -> None:
        now_s[0] += seconds

    return pass_time


@contextmanager
def busy_program(cpus: tuple[int, ...]) -> Iterator[None]:
    words = f"import os; os.sched_setaffinity(0, {cpus})\nprint(flush=True)\nwhile True: pass"
    rival = subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE)
    try:
        rival.stdout.readline()
        yield
    finally:
        rival.kill()
        rival.communicate()


def test_a_call_takes_as_long_as_the_clock_moves_meanwhile(moved_clock):
    found = time_call(partial(moved_clock, 2e-3))
    assert found.median_s == pytest.approx(2e-3)
    assert found.stderr_s == pytest.approx(0, abs=1e-9)
    assert (found.low_s, found.high_s) == pytest.approx((2e-3, 2e-3))


def test_short_calls_share_a_reading(moved_clock):
    found = time_call(partial(moved_clock, 1e-5), limit_s=1.0)
    assert found.median_s == pytest.approx(1e-5)
    assert found.calls >= 100 * found.readings


def test_calls_that_warm_up_are_not_counted(moved_clock):
    slow = iter([50.0, 20.0])
    found = time_call(lambda: moved_clock(next(slow, 2e-3)), warmup=2)
    assert found.high_s == pytest.approx(2e-3)


def test_a_slow_call_ends_at_the_limit_without_an_interval(moved_clock):
    found = time_call(partial(moved_clock, 4.0), limit_s=10.0, warmup=0)
    assert found.readings < 6
    assert not found.is_precise
    assert (found.low_s, found.high_s) == (0.0, np.inf)
    assert np.isfinite(found.stderr_s)


@needs_load
def test_readings_beside_a_busy_program_are_disturbed_and_widen_the_interval():
    work = np.ones(20_000)
    with pinned(1) as held, busy_program(held):
        found = time_call(work.sum, limit_s=1.2)
    assert found.disturbed
    assert not found.is_quiet
    assert not found.is_precise
    assert found.low_s <= found.median_s <= found.high_s


@pytest.mark.parametrize(
    "limits", [{"precision": 0.0}, {"limit_s": 0.0}, {"least": 5, "most": 4}, {"warmup": -1}]
)
def test_limits_that_cannot_be_kept_are_refused(limits):
    with pytest.raises(EvaluationError, match="time_call needs"):
        time_call(lambda: None, **limits)


@pytest.mark.proof
@needs_load
def test_a_busy_loop_that_starts_in_the_middle_moves_the_median_by_less_than_3_percent():
    work = np.arange(30_000.0)
    call = partial(np.sin, work)
    rivals, calls = [], [0]

    def call_and_start_the_loop_in_the_middle() -> None:
        calls[0] += 1
        if calls[0] == 4000:
            words = "import os\nwhile True: pass"
            rivals.append(subprocess.Popen([sys.executable, "-c", words]))
        call()

    with pinned(1):
        alone = time_call(call, precision=1e-4, limit_s=8.0)
        if not alone.is_quiet or alone.disturbed > alone.readings:
            pytest.skip("other programs load this machine")
        try:
            beside = time_call(call_and_start_the_loop_in_the_middle, precision=1e-4, limit_s=8.0)
        finally:
            for rival in rivals:
                rival.kill()
                rival.communicate()
    assert beside.disturbed
    assert beside.is_quiet
    assert beside.median_s / alone.median_s == pytest.approx(1, abs=0.03)
