"""The evaluator of one collective: its parts, its faults, and that every reading decides something."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.collective_time import CollectiveTime

USUAL = {
    "system": "h100-dgx",
    "collective": "all_reduce",
    "algorithm": "ring",
    "size": 1e8,
    "ranks": 64,
    "apart": 2,
    "alone": False,
}


def times(*designs, **options):
    return CollectiveTime(**options).evaluate(Batch.of(list(designs))).columns["time"]


@pytest.mark.parametrize(
    ("reading", "value"),
    [
        ("system", "frontier"),
        ("collective", "all_gather"),
        ("algorithm", "tree"),
        ("size", 2e8),
        ("ranks", 128),
        ("apart", 4),
    ],
)
def test_every_reading_changes_the_time(reading, value):
    one, other = times(USUAL, {**USUAL, reading: value})
    assert one != other


def test_devices_that_talk_alone_are_faster_where_they_share_adapters():
    shared = {**USUAL, "system": "frontier", "apart": 8}
    together, alone = times(shared, {**shared, "alone": True})
    assert alone < together


def test_a_settled_word_is_that_of_the_design():
    free = times({**USUAL, "algorithm": "tree"})
    settled = times({name: USUAL[name] for name in USUAL if name != "algorithm"}, algorithm="tree")
    assert free.tolist() == settled.tolist()


def test_a_collective_is_the_same_in_any_batch():
    designs = [
        {**USUAL, "system": system, "algorithm": algorithm, "ranks": ranks}
        for system in ("h100-dgx", "tpu-v4", "v100-pcie")
        for algorithm in ("auto", "hierarchical")
        for ranks in (2, 48, 512)
    ]
    assert times(*designs).tolist() == [times(design)[0] for design in designs]


def test_the_rate_of_a_bus_is_the_arrays_by_what_a_link_carries():
    told = CollectiveTime().evaluate(Batch.of([USUAL])).columns
    assert told["bandwidth"][0] == pytest.approx(1e8 / told["time"][0])
    assert told["bus_bandwidth"][0] == pytest.approx(2 * 63 / 64 * told["bandwidth"][0])
    assert told["nodes"][0] == 16


def test_an_unknown_system_is_told_with_the_nearest():
    with pytest.raises(SpecError) as told:
        CollectiveTime(system="h100-dxg")
    assert "h100-dgx" in str(told.value.hint)


def test_a_message_has_two_ranks_and_nobody_tells_himself():
    told = CollectiveTime(collective="send_recv").evaluate(
        Batch.of([{"size": 1e6, "ranks": ranks} for ranks in (1, 2, 3)])
    )
    assert {row: failure.reason for row, failure in told.failures.items()} == {
        0: "a collective needs at least 2 ranks, not 1",
        2: "send_recv needs 2 ranks, not 3",
    }


def test_what_lies_within_measured_sizes_and_ranks_is_not_extrapolated():
    designs = [
        {"size": 1e6, "ranks": 8},
        {"size": 1e9, "ranks": 8},
        {"size": 1e6, "ranks": 16},
        {"size": 1e6, "ranks": 8, "system": "frontier"},
    ]
    told = CollectiveTime().evaluate(
        Batch.of([{"system": "h100-dgx", **design} for design in designs])
    )
    assert told.columns["extrapolated"].tolist() == [0, 1, 1, 1]
