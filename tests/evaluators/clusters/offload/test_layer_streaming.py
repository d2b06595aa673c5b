"""A window of layers against one that is played, and its limits."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.offload.layer_streaming import LayerStreaming

BASE = {"layers": 48, "resident": 8, "moved": 2, "layer_size": 2e9, "layer_time": 0.05}


def told(**design):
    got = LayerStreaming().evaluate(Batch.of([BASE | design]))
    assert not got.failures
    return {name: float(values[0]) for name, values in got.columns.items()}


def played(resident, moved, layer_s, piece_s, pieces=400):
    """Seconds a piece in the long run: each layer computed, each piece fetched in its turn."""
    done, wire, here = [], 0.0, [0.0] * resident
    for place in range(pieces * moved):
        if place >= len(here):
            freed = done[len(here) + moved - 1 - resident]
            wire = max(wire, freed) + piece_s
            here += [wire] * moved
        done.append(max(done[-1] if done else 0.0, here[place]) + layer_s)
    half = len(done) // 2 // moved * moved
    return (done[-1] - done[half - 1]) / ((len(done) - half) / moved)


@given(
    st.integers(1, 4),
    st.integers(0, 10),
    st.floats(0.01, 1.0),
    st.floats(0.01, 4.0),
)
@settings(max_examples=30, deadline=None)
def test_the_steady_state_is_that_of_a_window_that_is_played(moved, beside, layer_s, piece_s):
    resident = moved + beside
    behind_s = piece_s - moved * layer_s
    assume(behind_s <= 0 or resident * layer_s < 150 * behind_s)  # steady within half of the pieces
    got = told(
        resident=resident,
        moved=moved,
        layer_time=layer_s,
        layer_size=piece_s * 25e9 / moved,
        transfer_latency=0.0,
    )
    expected = played(resident, moved, layer_s, piece_s)
    assert got["pass_time"] * moved / 48 == pytest.approx(expected, rel=1e-9)


def test_a_window_of_all_layers_moves_nothing_and_loses_nothing():
    got = told(resident=48)
    assert (got["slowdown"], got["wire_traffic"], got["saved"]) == (1.0, 0.0, 0.0)


@given(st.integers(2, 47), st.floats(1e9, 1e11))
@settings(max_examples=30, deadline=None)
def test_a_larger_window_and_a_faster_wire_are_never_slower(resident, bandwidth):
    slow = told(resident=resident, pcie_bandwidth=bandwidth)["pass_time"] * (1 + 1e-12)
    assert told(resident=resident + 1, pcie_bandwidth=bandwidth)["pass_time"] <= slow
    assert told(resident=resident, pcie_bandwidth=2 * bandwidth)["pass_time"] <= slow


def test_larger_pieces_pay_their_latency_less_often():
    one = told(moved=1, transfer_latency=0.1, layer_time=0.01)["pass_time"]
    assert told(moved=4, transfer_latency=0.1, layer_time=0.01)["pass_time"] < one


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"resident": 49}, "49 layers on the GPU at once, but there are 48: 1 too many"),
        ({"moved": 9}, "9 layers come at once, but the GPU holds 8: 1 too many"),
    ],
)
def test_a_window_that_cannot_be_says_by_how_much(changes, word):
    assert word in LayerStreaming().evaluate(Batch.of([BASE | changes])).failures[0].reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layers", 49),
        ("resident", 9),
        ("moved", 1),
        ("layer_size", 3e9),
        ("layer_time", 0.06),
        ("fixed", 1e9),
        ("pcie_bandwidth", 5e9),
        ("transfer_latency", 1.0),
    ],
)
def test_no_reading_of_a_window_is_inert(name, value):
    assert told(**{name: value}) != told()
