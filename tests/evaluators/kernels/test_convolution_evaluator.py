"""A network's convolutions on a scaled GPU: what holds for every GPU, and figures by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.kernels.convolution import Convolution
from dse_evaluators.kernels.gpus import GPUS
from dse_evaluators.kernels.replayed import ConvolutionReplayed

RESNET = Convolution(workload="resnet18")
FREE = {"l1_bandwidth": 1e18, "l2_bandwidth": 1e18, "dram_bandwidth": 1e18}
DESIGN = {
    "tile": "128x64x4",
    "sms": 30,
    "clock": 1.58e9,
    "macs_per_cycle": 128,
    "l1_bandwidth": 92e9,
    "l2_bandwidth": 1051e9,
    "dram_bandwidth": 547.6e9,
    "l2_size": 3 * 2**20,
    "batch": 4,
    "layer": "stage2-0-first",
}
designs = st.fixed_dictionaries(
    {
        "tile": st.sampled_from(["128x128x8", "128x64x4", "128x32x4", "64x64x8"]),
        "sms": st.sampled_from([8, 30, 84]),
        "clock": st.floats(1e8, 3e9),
        "macs_per_cycle": st.sampled_from([32, 64, 128, 512]),
        "l1_bandwidth": st.floats(1e9, 1e12),
        "l2_bandwidth": st.floats(1e10, 1e13),
        "dram_bandwidth": st.floats(1e9, 1e13),
        "l2_size": st.floats(2**14, 2**26),
        "batch": st.sampled_from([1, 2, 16]),
    }
)


def told(*rows, evaluator=RESNET):
    return evaluator.evaluate(Batch.of(rows)).columns


@settings(max_examples=30, deadline=None)
@given(
    design=designs,
    level=st.sampled_from(["l1_bandwidth", "l2_bandwidth", "dram_bandwidth"]),
    factor=st.floats(1, 100),
)
def test_more_bandwidth_is_never_slower(design, level, factor):
    slow, fast = told(design, design | {level: design[level] * factor})["latency"]
    assert fast <= slow * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(design=designs, factor=st.floats(1, 100))
def test_a_larger_l2_never_moves_more(design, factor):
    metrics = told(design, design | {"l2_size": design["l2_size"] * factor})
    assert np.diff(metrics["dram_traffic"]) <= 0
    assert np.diff(metrics["latency"]) <= 1e-12 * metrics["latency"][0]


@settings(max_examples=30, deadline=None)
@given(design=designs)
def test_the_parts_sum_to_the_whole(design):
    metrics = told(design)
    for whole in ("latency", "dram_traffic"):
        parts = [m.name for m in RESNET.provides.values() if m.part_of == whole]
        assert sum(metrics[name] for name in parts) == pytest.approx(metrics[whole], rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(design=designs)
def test_the_bottleneck_is_the_longest_part(design):
    metrics = told(design)
    words = RESNET.provides["bottleneck"].words
    named = metrics[f"{words[int(metrics['bottleneck'][0])]}_time"]
    assert named == max(metrics[f"{word}_time"] for word in words)


@settings(max_examples=30, deadline=None)
@given(design=designs)
def test_slack_is_a_share(design):
    assert 0 <= told(design)["slack"][0] <= 1


def test_infinite_bandwidth_leaves_the_cycles_of_whole_tiles():
    # 56 x 56 pixels x 4 images: 98 tiles of 128 and 1 of 64 filters, in 4 waves of 30 SMs; 576 taps.
    metrics = told(DESIGN | FREE)
    assert metrics["latency"][0] * 1.58e9 == pytest.approx(4 * 128 * 64 * 576 / 128, rel=1e-6)
    assert metrics["bottleneck"][0] == 0


def test_a_layer_alone_is_a_part_of_the_network():
    network = {name: value for name, value in DESIGN.items() if name != "layer"}
    metrics = told(network, DESIGN)
    assert metrics["latency"][1] < metrics["latency"][0]


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("tile", "128x32x4"),
        ("sms", 60),
        ("clock", 1e9),
        ("macs_per_cycle", 64),
        ("l1_bandwidth", 9e9),
        ("l2_bandwidth", 9e10),
        ("dram_bandwidth", 9e9),
        ("l2_size", 2**16),
        ("batch", 8),
        ("layer", "conv1"),
    ],
)
def test_every_knob_moves_a_metric(knob, value):
    metrics = told(DESIGN, DESIGN | {knob: value})
    assert any(column[0] != column[1] for column in metrics.values())


def test_what_a_design_lacks_is_the_gpu_s():
    given_all, given_none = told(
        DESIGN, {"tile": "128x64x4", "batch": 4, "layer": DESIGN["layer"]}
    )["latency"]
    assert given_all == given_none


@pytest.mark.parametrize("name", sorted(GPUS))
def test_a_gpu_as_it_is_costs_one_for_each_resource(name):
    metrics = told({"tile": "128x64x4"}, evaluator=Convolution(workload="digits-cnn", gpu=name))
    assert metrics["cost"][0] == pytest.approx(5)


@pytest.mark.parametrize(("name", "gflops"), [("titan-xp", 12134), ("p100", 8602), ("v100", 14837)])
def test_multiplications_are_those_of_the_paper_s_table(name, gflops):
    gpu = GPUS[name]
    assert 2e-9 * gpu.sms * gpu.clock * gpu.macs_per_cycle == pytest.approx(gflops, abs=2)


def test_a_tile_that_does_not_fit_says_by_how_much():
    found = RESNET.evaluate(Batch.of([DESIGN | {"tile": "256x256x32"}, DESIGN]))
    assert set(found.failures) == {0}
    assert found.failures[0].reason == (
        "a tile of 256x256x32 needs 128 KiB of shared memory, has 48 KiB: 80 KiB short"
    )


@pytest.mark.parametrize(
    "readings", [{"tile": ["9x9"]}, {"layer": ["stage9"]}, {"sms": [0]}, {"batch": [1.5]}]
)
def test_what_cannot_be_read_is_told_before_the_study_runs(readings):
    with pytest.raises(SpecError):
        RESNET.check_values(readings)


@pytest.mark.parametrize("readings", [{"tile": ["9x9"]}, {"layer": ["stage9"]}, {"l2_size": [0]}])
def test_a_walk_that_cannot_be_is_told_before_the_study_runs(readings):
    with pytest.raises(SpecError):
        ConvolutionReplayed(workload="resnet18").check_values(readings)


@pytest.mark.parametrize("images", [0, 5000])
def test_a_number_of_images_is_at_least_one_and_no_whole_data_set(images):
    with pytest.raises(SpecError, match="images cannot be"):
        Convolution(images=images)


def test_a_gpu_that_is_unknown_is_told_with_the_nearest():
    with pytest.raises(SpecError, match="titan-x") as raised:
        Convolution(gpu="titan-x")
    assert raised.value.hint == "did you mean 'titan-xp'?"


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer",
    ["stage2-0-3x3", "stage2-0-expand", "stage3-0-reduce", "stage4-1-3x3", "stage5-1-3x3"],
)
def test_a_real_layer_is_within_the_bar_of_the_walk(layer):
    # The bar of DeLTA's study: 5 % of L2's traffic, 20 % of DRAM's, on a TITAN Xp.
    batch = Batch.of([{"layer": layer, "tile": "128x64x4", "l2_size": 3 * 2**20, "batch": 1}])
    model = Convolution(workload="resnet50").evaluate(batch).columns
    walk = ConvolutionReplayed(workload="resnet50").evaluate(batch).columns
    read = model["input_traffic"] + model["filter_traffic"]
    assert model["l2_traffic"] == pytest.approx(walk["l2_traffic"], rel=0.05)
    assert read == pytest.approx(walk["read_traffic"], rel=0.20)
