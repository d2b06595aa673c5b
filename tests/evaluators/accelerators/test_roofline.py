"""The smooth roofline keeps the laws of a roofline, whatever its constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.accelerators.devices.roofline import (
    KernelWork,
    RooflineConstants,
    times,
    total_s,
)

PLAIN = RooflineConstants(compute_share=1.0, memory_share=1.0, exponent=2.0, launch_s=0.0)


def product(m=512.0, n=512.0, k=512.0):
    return KernelWork(
        flops=np.array([2 * m * n * k]),
        moved_bytes=np.array([2 * (m * k + k * n + m * n)]),
        chain=np.array([k]),
        converted=np.array([m * k]),
    )


def seconds(work, constants, flops_per_s=1e14, bytes_per_s=1e12):
    got = times(work, constants, flops_per_s=flops_per_s, bytes_per_s=bytes_per_s)
    return got.total_s.item()


sides = st.floats(1, 1e5)
works = st.builds(product, sides, sides, sides)
constants = st.builds(
    RooflineConstants,
    compute_share=st.floats(0.1, 1),
    memory_share=st.floats(0.1, 1),
    exponent=st.floats(1, 10),
    launch_s=st.floats(0, 1e-4),
    chain_s=st.floats(0, 1e-8),
    conversion_bytes=st.floats(0, 10),
)
rates = st.floats(1e9, 1e16)


@given(works, constants, rates, rates, st.floats(1, 100))
def test_more_bandwidth_is_never_slower(work, constants, flops_per_s, bytes_per_s, more):
    before = seconds(work, constants, flops_per_s, bytes_per_s)
    assert seconds(work, constants, flops_per_s, bytes_per_s * more) <= before * (1 + 1e-12)


@given(works, constants, rates, rates, st.floats(1, 100))
def test_a_higher_rate_is_never_slower(work, constants, flops_per_s, bytes_per_s, more):
    before = seconds(work, constants, flops_per_s, bytes_per_s)
    assert seconds(work, constants, flops_per_s * more, bytes_per_s) <= before * (1 + 1e-12)


@given(works, constants, rates, rates)
def test_no_kernel_is_faster_than_its_highest_roof(work, constants, flops_per_s, bytes_per_s):
    compute_s = work.flops.item() / (constants.compute_share * flops_per_s)
    memory_s = work.moved_bytes.item() / (constants.memory_share * bytes_per_s)
    highest = max(compute_s, memory_s, work.chain.item() * constants.chain_s)
    assert seconds(work, constants, flops_per_s, bytes_per_s) >= highest * (1 - 1e-12)


@given(works, constants, rates, rates)
def test_parts_are_times(work, constants, flops_per_s, bytes_per_s):
    got = times(work, constants, flops_per_s=flops_per_s, bytes_per_s=bytes_per_s)
    parts = (got.compute_s, got.memory_s, got.chain_s, got.conversion_s, got.launch_s)
    assert all((part >= 0).all() and np.isfinite(part).all() for part in parts)


@given(works, rates)
def test_infinite_bandwidth_leaves_the_ideal_time(work, flops_per_s):
    ideal_s = work.flops.item() / flops_per_s
    assert seconds(work, PLAIN, flops_per_s, np.inf) == pytest.approx(ideal_s)


def test_roofs_that_are_equal_meet_by_the_exponent():
    work = replace(product(), flops=np.array([1e14]), moved_bytes=np.array([1e12]))
    assert seconds(work, PLAIN) == pytest.approx(2**0.5)
    assert seconds(work, replace(PLAIN, exponent=1.0)) == pytest.approx(2.0)


def test_a_sharp_roofline_is_the_higher_roof():
    sharp = replace(PLAIN, exponent=200.0)
    work = product(4096, 4096, 4096)
    assert seconds(work, sharp) == pytest.approx(work.flops.item() / 1e14, rel=1e-3)


def test_work_of_nothing_takes_the_launch():
    nothing = KernelWork(
        flops=np.zeros(1), moved_bytes=np.zeros(1), chain=np.zeros(1), converted=np.zeros(1)
    )
    assert seconds(nothing, replace(PLAIN, launch_s=3e-6)) == 3e-6


@pytest.mark.parametrize("chain_s", [0.0, 4e-10])
def test_the_total_alone_is_that_of_the_parts_bit_by_bit(chain_s):
    rng = np.random.default_rng(0)
    flops, moved, depth = (10.0 ** rng.uniform(0, 12, 500) for _ in range(3))
    flops[:3] = moved[:2] = depth[:1] = 0.0  # no work, or of one kind alone
    work = KernelWork(flops=flops, moved_bytes=moved, chain=depth, converted=depth)
    constants = RooflineConstants(
        compute_share=0.78,
        memory_share=0.85,
        exponent=rng.uniform(1.2, 3.0, 500),
        launch_s=3e-6,
        chain_s=chain_s,
        conversion_bytes=3.0,
    )
    peaks = {"flops_per_s": 989e12, "bytes_per_s": 3.35e12}
    whole = times(work, constants, **peaks).total_s
    assert np.array_equal(total_s(work, constants, **peaks), whole)
