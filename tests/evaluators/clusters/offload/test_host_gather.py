"""Rows that the host gathers or the device reads, against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.offload.host_gather import HostGather, count_requests

ACCESSES = [{"access": one} for one in ("staged", "direct", "aligned")]
MODEL = {"rows": 1000, "row_size": 512, "link_bandwidth": "10 GB/s"}


def find(*designs, **knobs):
    return HostGather(knobs={**MODEL, **knobs}).evaluate(Batch.of(designs))


def test_staged_rows_are_gathered_by_threads_and_then_cross_the_link():
    found = find(ACCESSES[0], threads=4, thread_bandwidth="5 GB/s").columns
    gather_s = 512_000 / 20e9
    assert found["gather_time"][0] == pytest.approx(gather_s, rel=1e-12)
    assert found["cpu_time"][0] == pytest.approx(4 * gather_s, rel=1e-12)
    crossing_s = 4000 * (128 + 18) / 10e9
    assert found["transfer_time"][0] == pytest.approx(gather_s + crossing_s, rel=1e-12)
    assert (found["requests"][0], found["pinned_memory"][0]) == (4000, 512_000)


def test_threads_share_the_bandwidth_of_the_memory():
    found = find(ACCESSES[0], threads=64, host_bandwidth="40 GB/s").columns
    assert found["gather_time"][0] == pytest.approx(512_000 / 20e9, rel=1e-12)


def test_rows_of_whole_lines_need_no_alignment():
    found = find(*ACCESSES).columns
    assert found["requests"].tolist() == [4000, 4000, 4000]
    assert found["transfer_time"][1] == found["transfer_time"][2]
    assert found["pinned_memory"].tolist() == [512_000, 512e6, 512e6]


def test_requests_of_rows_of_192_bytes_are_counted_by_hand():
    # Rows start at byte 0 or 64 of a line, in turn. At 0: a load of one line, one of its half. At
    # 64: a load across two lines, one of the last half; these are two lines in all.
    sizes = np.array([192.0, 192.0])
    requests, moved = count_requests(sizes, np.array([False, True]))
    assert requests.tolist() == [2.5, 2]
    assert moved.tolist() == [192, 192]


def test_counts_are_those_of_a_walk_over_the_bytes():
    for size in (4, 36, 100, 132, 400, 2408):
        starts = [place * size % 128 for place in range(128)]
        lines = [{byte // 128 for byte in range(at, at + size)} for at in starts]
        loads = [
            {(byte // 128, (byte - at) // 128) for byte in range(at, at + size)} for at in starts
        ]
        expected = [np.mean([len(one) for one in each]) for each in (loads, lines)]
        found, _ = count_requests(np.full(2, float(size)), np.array([False, True]))
        np.testing.assert_allclose(found, expected)


def test_small_rows_wait_for_requests_in_flight():
    found = find(ACCESSES[2], row_size=32, round_trip=1e-6, outstanding=100).columns
    assert found["transfer_time"][0] == pytest.approx(1000 * 1e-6 / 100, rel=1e-12)


def test_more_rows_than_the_table_has_are_a_fault():
    assert "more rows than the table" in find(ACCESSES[1], table_rows=10).failures[0].reason


def test_a_size_that_is_out_of_range_is_refused():
    with pytest.raises(SpecError, match="row_size"):
        HostGather(knobs={"row_size": 0})
