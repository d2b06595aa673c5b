"""ZeRO-Infinity's closed forms against the figures of its paper, and among themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.offload.bandwidth import OffloadBandwidth
from dse_evaluators.clusters.offload.bandwidth_law import KINDS

SIZES = {"0.1T": (80, 10240, 128), "0.5T": (100, 20480, 160), "1T": (128, 25600, 256)} | {
    "10T": (195, 65536, 512),
    "100T": (315, 163840, 1024),
}


def told(**design):
    base = {"layers": 80, "hidden": 8192}
    got = OffloadBandwidth().evaluate(Batch.of([base | design]))
    return {name: float(values[0]) for name, values in got.columns.items()}


# Rajbhandari et al., ZeRO-Infinity, SC 2021, figure 2a (recalled): TiB of states, TiB of
# checkpoints of 32 sequences of 1,024, GiB that four sequences want between two checkpoints.
@pytest.mark.parametrize(
    ("size", "states", "checkpoints", "working"),
    [
        ("0.1T", 1.83, 0.05, 1.63),
        ("0.5T", 9.16, 0.12, 2.50),
        ("1T", 18.31, 0.20, 3.56),
        ("10T", 182.81, 0.76, 8.00),
        ("100T", 1845.70, 3.08, 18.00),
    ],
)
def test_memories_are_those_of_the_figure(size, states, checkpoints, working):
    layers, hidden, heads = SIZES[size]
    model = {"layers": layers, "hidden": hidden, "heads": heads}
    assert told(**model)["states"] / 2**40 == pytest.approx(states, abs=0.006)
    assert told(**model, batch=32)["checkpoints"] / 2**40 == pytest.approx(checkpoints, abs=0.006)
    assert told(**model, batch=4)["working_memory"] / 2**30 == pytest.approx(working, abs=0.006)


# Section 4.2: 70e12 / 1024, 9 x 70e12 / 512 and 70e12 / (24 x 2048), by hand.
@pytest.mark.parametrize(
    ("metric", "design", "needs"),
    [
        ("weights_needs", {"batch": 1, "target": 0.5}, 68.359375e9),
        ("optimizer_needs", {"batch": 2, "target": 0.9}, 1.23046875e12),
        ("activations_needs", {"hidden": 2048, "target": 0.5}, 1.42415364583e9),
    ],
)
def test_bandwidths_are_those_of_the_equations(metric, design, needs):
    assert told(**design)[metric] == pytest.approx(needs, rel=1e-9)


@given(st.sampled_from(KINDS), st.floats(0.01, 0.99), st.integers(1, 64))
@settings(max_examples=30, deadline=None)
def test_the_bandwidth_for_a_target_reaches_it(kind, target, batch):
    needs = told(batch=batch, target=target)[f"{kind}_needs"]
    got = told(batch=batch, **{f"{kind}_bandwidth": needs})
    assert got[f"{kind}_efficiency"] == pytest.approx(target, rel=1e-9)


@given(st.sampled_from(KINDS), st.floats(1e8, 1e13))
@settings(max_examples=30, deadline=None)
def test_more_bandwidth_is_never_slower(kind, bandwidth):
    name = f"{kind}_bandwidth"
    assert told(**{name: 2 * bandwidth})["step_time"] <= told(**{name: bandwidth})["step_time"]


def test_together_the_kinds_leave_less_than_the_worst_of_them():
    got = told()
    assert got["efficiency"] < min(got[f"{kind}_efficiency"] for kind in KINDS)
    assert got["efficiency"] == pytest.approx(got["compute_time"] / got["step_time"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layers", 81),
        ("hidden", 4096),
        ("heads", 32),
        ("batch", 2),
        ("sequence", 2048),
        ("checkpoint_interval", 2),
        ("rate", 1e14),
        ("target", 0.9),
        ("weights_bandwidth", 1e9),
        ("optimizer_bandwidth", 1e9),
        ("activations_bandwidth", 1e9),
    ],
)
def test_no_reading_of_the_law_is_inert(name, value):
    assert told(**{name: value}) != told()
