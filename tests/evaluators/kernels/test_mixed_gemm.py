"""A product of narrow weights: published speed-ups, and what holds for every width."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.kernels.mixed_devices import MIXED_DEVICES
from dse_evaluators.kernels.mixed_gemm import MixedGemm

GEMM = MixedGemm()
DESIGN = {
    "weight_bits": 4,
    "batch": 16,
    "group": 128,
    "inputs": 8192,
    "outputs": 8192,
    "device": "a10",
    "sparsity": "dense",
    "kernel": "marlin",
}
designs = st.fixed_dictionaries(
    {
        "weight_bits": st.integers(1, 8) | st.just(16),
        "batch": st.integers(1, 512),
        "group": st.sampled_from([0, 32, 64, 128]),
        "inputs": st.sampled_from([1024, 4096, 8192]),
        "outputs": st.sampled_from([1024, 4096, 8192]),
        "device": st.sampled_from(sorted(MIXED_DEVICES)),
        "sparsity": st.sampled_from(["dense", "2:4"]),
    }
)


def told(*rows):
    return GEMM.evaluate(Batch.of(rows)).columns


@pytest.mark.parametrize(
    ("design", "published", "tolerance"),
    [
        # Marlin's README: the optimum on an A10 with 0.125 bits of scales, up to 16 rows.
        ({"batch": 16, "group": 128, "device": "a10"}, 3.87, 0.005),
        # Sparse-Marlin's README: around 5.3; twice as fast as dense fp16 for many rows.
        ({"batch": 16, "group": 0, "device": "rtx-3090", "sparsity": "2:4"}, 5.3, 0.05),
        ({"batch": 512, "group": 128, "device": "rtx-3090", "sparsity": "2:4"}, 2.0, 0.05),
    ],
)
def test_a_speed_up_is_the_published_one(design, published, tolerance):
    assert told(design | {"weight_bits": 4})["speedup"][0] == pytest.approx(
        published, abs=tolerance
    )


def test_bytes_are_those_of_a_hand_s_count():
    metrics = told(DESIGN)
    weights = 8192 * 8192
    assert metrics["weight_traffic"][0] == weights / 2
    assert metrics["scale_traffic"][0] == 2 * weights / 128
    assert metrics["activation_traffic"][0] == 2 * 16 * (8192 + 8192)
    assert metrics["index_traffic"][0] == 0


def test_two_of_four_weights_have_an_index_of_two_bits_each():
    metrics = told(DESIGN | {"sparsity": "2:4"})
    assert metrics["weight_traffic"][0] == 8192 * 8192 / 4
    assert metrics["index_traffic"][0] == 8192 * 8192 / 8


@settings(max_examples=30, deadline=None)
@given(design=designs)
def test_the_parts_sum_to_the_whole(design):
    metrics = told(design)
    for whole in ("latency", "traffic"):
        parts = [m.name for m in GEMM.provides.values() if m.part_of == whole]
        assert sum(metrics[name] for name in parts) == pytest.approx(metrics[whole], rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(design=designs, bits=st.integers(1, 8))
def test_fewer_bits_are_never_more_bytes_but_for_scales(design, bits):
    metrics = told(design | {"weight_bits": bits}, design | {"weight_bits": min(bits + 1, 8)})
    assert metrics["traffic"][0] <= metrics["traffic"][1]
    assert metrics["latency"][0] <= metrics["latency"][1] * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(design=designs)
def test_larger_groups_are_never_more_bytes(design):
    groups = [32, 64, 128, 0]
    traffic = told(*(design | {"group": group} for group in groups))["traffic"]
    assert sorted(traffic, reverse=True) == traffic.tolist()


@settings(max_examples=30, deadline=None)
@given(design=designs, more=st.integers(0, 500))
def test_more_rows_are_never_faster(design, more):
    few, many = told(design, design | {"batch": design["batch"] + more})["latency"]
    assert few <= many * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(design=designs)
def test_sixteen_dense_bits_are_no_faster_than_themselves(design):
    metrics = told(design | {"weight_bits": 16, "sparsity": "dense"})
    assert metrics["speedup"][0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("weight_bits", 5),
        ("batch", 17),
        ("group", 64),
        ("inputs", 4096),
        ("outputs", 4096),
        ("device", "l40s"),
        ("sparsity", "2:4"),
        ("kernel", "ideal"),
    ],
)
def test_every_knob_moves_a_metric(knob, value):
    metrics = told(DESIGN, DESIGN | {knob: value})
    assert any(column[0] != column[1] for column in metrics.values())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"weight_bits": 3}, "marlin has weights of 4 bits, not of 3"),
        ({"kernel": "triton", "sparsity": "2:4"}, "triton does not skip zeros"),
        (
            {"weight_bits": 16, "kernel": "ideal", "inputs": 2**17, "outputs": 2**17, "group": 0},
            "needs 34.4 GB of memory, has 24.0 GB: 10.4 GB short",
        ),
    ],
)
def test_what_cannot_be_says_why_and_by_how_much(change, reason):
    found = GEMM.evaluate(Batch.of([DESIGN | change, DESIGN]))
    assert {row: failure.reason for row, failure in found.failures.items()} == {0: reason}


@pytest.mark.parametrize(
    "readings", [{"device": ["a11"]}, {"kernel": ["x"]}, {"weight_bits": [0]}, {"batch": [0]}]
)
def test_what_cannot_be_read_is_told_before_the_study_runs(readings):
    with pytest.raises(SpecError):
        GEMM.check_values(readings)


def test_on_hopper_measured_kernels_gain_with_few_rows_only_and_far_less_than_the_roofline():
    matrix = {"inputs": 8192, "outputs": 8192, "group": 0, "device": "h200-sxm"}
    rows = (1, 16, 64, 128)
    kernel, ideal = (
        told(*(DESIGN | matrix | {"batch": each, "kernel": name} for each in rows))["speedup"]
        for name in ("measured", "ideal")
    )
    assert kernel[0] > 1.5
    assert kernel[1] < 1.3
    assert kernel[3] < 1
    assert list(kernel) == sorted(kernel, reverse=True)
    assert min(ideal[:2]) > 3.5


def test_parts_of_a_measured_kernel_sum_to_its_time():
    found = told(DESIGN | {"device": "l40s", "kernel": "measured"})
    parts = sum(found[f"{part}_time"][0] for part in ("memory", "compute", "kernel"))
    assert parts == pytest.approx(found["latency"][0])


@pytest.mark.parametrize("device", ["a10", "t4"])
def test_a_device_without_measurements_like_it_has_no_measured_kernel(device):
    found = GEMM.evaluate(Batch.of([DESIGN | {"device": device, "kernel": "measured"}]))
    assert "no product with narrow weights was measured" in found.failures[0].reason
