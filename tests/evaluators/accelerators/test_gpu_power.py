"""What devices draw: clipped at the limit, slower under a cap, measured where somebody did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.gpu_power import IDLE_SHARE, Power, compute_draw, power_of

POWER = Power(limit_w=700.0, base_w=100.0, idle_w=90.0, flop_j=1e-12, byte_j=50e-12, measured=True)


def spent(flops, moved_bytes, seconds, cap_w=700.0):
    columns = [np.array([float(each)]) for each in (flops, moved_bytes, seconds, cap_w)]
    return compute_draw(POWER, *columns)


def watts(got, seconds):
    joules = got.base_j + got.compute_j + got.memory_j
    return (joules / (seconds + got.throttled_s)).item()


def test_below_the_limit_it_is_the_sum_of_its_parts():
    got = spent(200e12, 2e12, 1.0)
    assert watts(got, 1.0) == pytest.approx(100 + 200 + 100)
    assert got.throttled_s.item() == 0


def test_above_the_limit_it_is_clipped_and_takes_no_longer():
    got = spent(900e12, 2e12, 1.0)
    assert watts(got, 1.0) == pytest.approx(700)
    assert got.throttled_s.item() == 0


def test_a_lower_cap_stretches_the_same_work():
    got = spent(200e12, 2e12, 1.0, cap_w=250.0)
    assert got.throttled_s.item() == pytest.approx(1.0)  # 300 J at 150 W
    assert watts(got, 1.0) == pytest.approx(250)


@given(st.floats(0, 1e15), st.floats(0, 1e13), st.floats(101, 700), st.floats(101, 700))
def test_a_lower_cap_is_never_faster_and_never_exceeded(flops, moved_bytes, one, other):
    low, high = sorted((one, other))
    slow, fast = (spent(flops, moved_bytes, 1.0, cap) for cap in (low, high))
    assert slow.throttled_s >= fast.throttled_s
    assert watts(slow, 1.0) <= low * (1 + 1e-9)


def test_an_h200_draws_what_was_measured_of_it():
    power = power_of(device_of("h200-sxm"), "bf16")
    assert power.measured
    assert (power.base_w, power.flop_j) == (131.0, 0.652e-12)


def test_what_nobody_measured_draws_its_limit_at_its_full_rate():
    device = device_of("h100-sxm")
    power = power_of(device, "bf16")
    assert not power.measured
    full_w = power.base_w + power.flop_j * device.flops_per_s["bf16"]
    assert full_w == pytest.approx(700.0)
    assert power.idle_w == pytest.approx(IDLE_SHARE * 700)


def test_a_device_whose_idle_power_was_told_idles_at_that():
    assert power_of(device_of("tpu-v4"), "bf16").idle_w == 90.0


def test_a_device_whose_limit_no_source_tells_is_refused():
    with pytest.raises(SpecError, match="power limit of tpu-v5e"):
        power_of(device_of("tpu-v5e"), "bf16")


def test_a_user_may_tell_it():
    assert power_of(replace(device_of("tpu-v5e"), power_limit_w=200.0), "bf16").limit_w == 200.0
