"""Collectives against measured ones, and at their limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import SpecError
from dse_evaluators.clusters.collectives import (
    COLLECTIVES,
    CollectiveConstants,
    calibrations,
    compute_link_share,
    constants_of,
    seconds,
)

ROWS = calibrations()


def test_within_a_node_sizes_that_were_held_out_are_met_within_fifteen_percent_on_average():
    assert len(ROWS) == 50
    assert np.mean([row.judged_mape for row in ROWS.values()]) <= 0.08
    assert np.mean([row.judged_mape <= 0.15 for row in ROWS.values()]) >= 0.9


@pytest.mark.parametrize("key", ROWS, ids=lambda key: f"{key[0]}-{key[1]}-{key[2]}")
def test_no_size_is_judged_that_was_fitted(key):
    assert not set(ROWS[key].fitted_bytes) & set(ROWS[key].judged_bytes)
    assert ROWS[key].judged_bytes


@pytest.mark.parametrize(
    ("fabric", "ranks", "size_bytes", "measured_s"),
    [
        # microsoft/vidur@7d47513, data/profiling/network, medians
        ("a100-dgx", 4, 1_572_864, 61e-6),
        ("h100-dgx", 8, 31_457_280, 188e-6),
        ("h100-dgx", 8, 50_331_648, 271e-6),
    ],
)
def test_an_all_reduce_takes_about_what_was_measured(fabric, ranks, size_bytes, measured_s):
    told = seconds(
        "all_reduce", np.array([size_bytes]), ranks, constants_of(fabric, "all_reduce", ranks)
    )
    assert told[0] == pytest.approx(measured_s, rel=0.15)


@pytest.mark.parametrize("collective", COLLECTIVES)
@given(
    size=st.floats(1.0, 1e10),
    ranks=st.integers(2, 1024),
    rate=st.floats(1e9, 1e12),
    pipelining=st.floats(0.0, 1.0),
)
def test_a_faster_link_is_never_slower(collective, size, ranks, rate, pipelining):
    slow, fast = (
        seconds(
            collective,
            np.array([size]),
            ranks,
            CollectiveConstants(latency_s=1e-5, bytes_per_s=rate * more, pipelining=pipelining),
        )
        for more in (1.0, 2.0)
    )
    assert fast <= slow


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_one_rank_has_nothing_to_say(collective):
    alone = CollectiveConstants(latency_s=1e-5, bytes_per_s=1e9, pipelining=0.0)
    assert seconds(collective, np.array([1e6]), 1, alone) == 0


def test_a_ring_carries_an_all_reduce_almost_twice():
    assert compute_link_share("all_reduce", 8) == pytest.approx(2 * 7 / 8)
    assert compute_link_share("all_gather", 8) == pytest.approx(7 / 8)


def test_more_ranks_than_were_measured_are_as_the_most_that_were():
    assert constants_of("h100-dgx", "all_reduce", 64) == constants_of("h100-dgx", "all_reduce", 8)


def test_an_unknown_fabric_is_told_with_the_nearest():
    with pytest.raises(SpecError, match="h100-dxg") as told:
        constants_of("h100-dxg", "all_reduce", 8)
    assert "h100-dgx" in str(told.value.hint)
