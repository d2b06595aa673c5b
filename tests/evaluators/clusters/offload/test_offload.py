"""A step with offloading: limits, what lies where, what is moved, and what more hardware does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.offload.data_placement import OVERLAPS, PLACES, WIRES
from dse_evaluators.clusters.offload.offload import Offload

ROOMY = Offload(host_memory="1 PB", ssd_capacity="1 PB", device="rtx-4090")
BASE = {"layers": 40, "hidden": 5120, "batch": 8, "weights_at": "nvme", "optimizer_at": "nvme"}
BASE |= {"activations_at": "cpu", "ssds": 12}
HOME = {"layers": 4, "hidden": 1024, "batch": 2, "weights_at": "gpu", "optimizer_at": "gpu"}
HOME |= {"kept": 1.0, "overlap": "none"}
PLACED = st.sampled_from(PLACES)
PLANS = st.fixed_dictionaries(
    {
        "layers": st.integers(1, 40),
        "hidden": st.sampled_from([64, 512, 1024]),
        "batch": st.integers(1, 8),
        "sequence": st.sampled_from([1, 128, 1024]),
        "accumulate": st.integers(1, 4),
        "kept": st.floats(0, 1),
        "weights_at": PLACED,
        "optimizer_at": PLACED,
        "activations_at": PLACED,
        "gradients_at": PLACED,
        "wire_format": st.sampled_from(sorted(WIRES)),
        "ssds": st.integers(1, 12),
    }
)

# Another value of each reading than BASE has.
KNOBS = {
    "layers": 41,
    "hidden": 5248,
    "vocabulary": 32_000,
    "batch": 9,
    "sequence": 512,
    "accumulate": 2,
    "checkpoint_interval": 2,
    "kept": 0.5,
    "resident": 3,
    "held": 2,
    "weights_at": "cpu",
    "optimizer_at": "cpu",
    "gradients_at": "nvme",
    "activations_at": "gpu",
    "overlap": "none",
    "wire_format": "fp8",
    "pcie_bandwidth": 1e9,
    "adam_rate": 1e8,
    "host_memory": 1e12,
    "ssds": 6,
    "ssd_read_bandwidth": 1e9,
    "ssd_write_bandwidth": 1e9,
    "ssd_endurance": 1e15,
}


def metrics(evaluator=ROOMY, **design):
    return evaluator.evaluate(Batch.of([design]))


def told(evaluator=ROOMY, **design):
    got = metrics(evaluator, **design)
    assert not got.failures
    return {name: float(values[0]) for name, values in got.columns.items()}


def reason(evaluator=ROOMY, **design):
    return metrics(evaluator, **design).failures[0].reason


def seconds(*designs):
    return ROOMY.evaluate(Batch.of(designs)).columns["step_time"] * np.array([1 - 1e-12, 1.0])


def test_nothing_offloaded_needs_no_wire_and_no_disk():
    got = told(**HOME)
    moved = ("wire_traffic", "ssd_read", "ssd_written", "cpu_memory", "nvme_memory")
    assert [got[name] for name in moved] == [0.0] * 5
    assert got["transfer_time"] == 0.0


# Counted by hand: 6 operations a weight and token, 12 s h L for scores; 28 bytes a weight by Adam.
def test_what_fits_on_the_gpu_takes_its_computing_and_its_optimizer_and_no_more():
    got, device = told(**HOME, vocabulary=0), device_of("rtx-4090")
    weights, tokens = 12 * 4 * 1024**2, 2 * 1024
    flops = 6 * weights * tokens + 12 * tokens * 1024 * 1024 * 4
    computed = flops / (0.9 * device.flops_per_s["fp16"])
    updated = 28 * weights / device.dram_bytes_per_s
    assert got["step_time"] == pytest.approx(computed + updated, rel=1e-12)
    assert got["recompute_time"] == 0.0


def test_states_on_disk_are_read_with_12_bytes_and_written_with_14_bytes_a_weight():
    got = told(**BASE, overlap="all", kept=0.0)
    passes = 2 * 2 * got["parameters"]  # fetched forward and backward
    assert got["ssd_read"] - passes == pytest.approx(12 * got["parameters"], rel=1e-12)
    assert got["ssd_written"] == pytest.approx(14 * got["parameters"], rel=1e-12)


@given(PLANS)
@settings(max_examples=30, deadline=None)
def test_what_lies_on_gpu_cpu_and_nvme_sums_to_the_states(plan):
    got = told(**plan | {"wire_format": "fp16"}, overlap="none")
    places = got["gpu_states"] + got["cpu_states"] + got["nvme_states"]
    assert places == pytest.approx(got["states"], rel=1e-12)
    assert got["states"] == pytest.approx(16 * got["parameters"], rel=1e-12)


def test_gradients_that_the_optimizer_takes_at_once_are_never_kept():
    got = told(**BASE, overlap="all")
    assert got["states"] == pytest.approx(14 * got["parameters"], rel=1e-12)
    assert told(**BASE, overlap="all", accumulate=2)["states"] > got["states"]


@given(PLANS, st.sampled_from(OVERLAPS), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_nothing_is_ever_negative(plan, overlap, resident):
    got = metrics(**plan, overlap=overlap, resident=resident)
    assume(not got.failures)
    assert min(float(values[0]) for values in got.columns.values()) >= 0.0


@given(PLANS, st.sampled_from(OVERLAPS), st.sampled_from(["pcie_bandwidth", "adam_rate"]))
@settings(max_examples=30, deadline=None)
def test_more_bandwidth_and_a_faster_cpu_are_never_slower(plan, overlap, name):
    plan = plan | {"overlap": overlap}
    more, less = seconds(plan | {name: 4e10}, plan | {name: 1e10})
    assert more <= less


@given(PLANS, st.sampled_from(OVERLAPS))
@settings(max_examples=30, deadline=None)
def test_another_disk_is_never_slower(plan, overlap):
    plan = plan | {"overlap": overlap}
    more, less = seconds(plan | {"ssds": plan["ssds"] + 1}, plan)
    assert more <= less


@given(PLANS)
@settings(max_examples=30, deadline=None)
def test_transfers_that_overlap_are_never_slower_than_those_that_do_not(plan):
    moving, none = seconds(plan | {"overlap": "transfers"}, plan | {"overlap": "none"})
    assert moving <= none


@given(PLANS, st.sampled_from(PLACES))
@settings(max_examples=30, deadline=None)
def test_an_optimizer_that_overlaps_is_never_slower_than_one_that_does_not(plan, place):
    home = "gpu" if place == "gpu" else "cpu"
    plan = plan | {"optimizer_at": place, "gradients_at": home}
    everything, moving = seconds(plan | {"overlap": "all"}, plan | {"overlap": "transfers"})
    assert everything <= moving


@given(PLANS)
@settings(max_examples=30, deadline=None)
def test_what_is_kept_for_good_on_the_gpu_is_never_fetched(plan):
    few = plan | {"weights_at": "cpu", "overlap": "transfers"}
    more, fewer = told(**few, resident=1), told(**few, resident=0)
    assert more["step_time"] <= fewer["step_time"] * (1 + 1e-12)
    assert more["wire_traffic"] <= fewer["wire_traffic"]


def test_overlap_is_paid_for_with_memory():
    none, moving = told(**BASE, overlap="none"), told(**BASE, overlap="transfers")
    assert moving["gpu_memory"] > none["gpu_memory"]


def test_batches_taken_together_share_one_optimizer():
    one, four = told(**BASE), told(**BASE, accumulate=4)
    assert four["optimizer_time"] == one["optimizer_time"]
    assert four["compute_time"] == pytest.approx(4 * one["compute_time"], rel=1e-12)
    assert four["throughput"] > one["throughput"]


@pytest.mark.parametrize(("name", "value"), KNOBS.items())
def test_no_knob_is_inert(name, value):
    rich = BASE | {"host_memory": 9e11}
    assert told(Offload(), **rich | {name: value}) != told(Offload(), **rich)


def test_every_reading_is_a_knob_or_decides_what_fits():
    assert KNOBS.keys() | {"ssd_capacity"} == Offload().reads | Offload().optional
    assert "nvme_memory" in reason(Offload(ssd_capacity="10 GB"), **BASE)


def test_a_row_is_the_same_whatever_the_batch_around_it():
    rows = [BASE | {"batch": size, "kept": 0.1 * size} for size in range(1, 9)]
    together = ROOMY.evaluate(Batch.of(rows)).columns
    alone = [ROOMY.evaluate(Batch.of([row])).columns for row in rows]
    assert {name: values.tolist() for name, values in together.items()} == {
        name: [float(one[name][0]) for one in alone] for name in together
    }


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"weights_at": "gpu"}, "GB of gpu_memory, has 22.6 GB: "),
        ({"host_memory": 1e9}, "GB of cpu_memory, has 1 GB: "),
        ({"ssds": 0}, "2 kinds of data on disk, and 0 disks"),
        ({"resident": 50}, "50 layers stay on the GPU, but there are 40: 10 too many"),
        ({"checkpoint_interval": 41}, "41 layers are between checkpoints"),
        (
            {"overlap": "all", "gradients_at": "gpu"},
            "overlaps on the CPU: gradients_at must be the CPU",
        ),
    ],
)
def test_a_plan_that_cannot_be_says_why_and_by_how_much(changes, word):
    assert word in reason(Offload(), **BASE | changes)


def test_wear_is_what_is_written_of_what_a_disk_endures():
    got = told(**BASE, ssd_endurance=1e15)
    tokens = got["throughput"] * got["step_time"]
    assert got["wear_cost"] == pytest.approx(got["ssd_written"] / 1e15 * 450 / tokens, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"device": "rtx-4099"}, "rtx-4090"),
        ({"number_format": "fp4"}, "fp8"),
        ({"compute_share": 1.5}, "compute_share"),
        ({"prices": {"sdd": 300.0}}, "ssd"),
        ({"prices": {"ssd": -1.0}}, "ssd"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options, word):
    with pytest.raises(SpecError) as caught:
        Offload(**options)
    assert word in f"{caught.value} {caught.value.hint}"


def test_a_dearer_disk_makes_a_dearer_node():
    dear = told(Offload(prices={"ssd": 1000.0}), **BASE)
    assert dear["node_price"] - told(Offload(), **BASE)["node_price"] == pytest.approx(12 * 550)


def test_a_word_that_no_reading_has_is_refused():
    with pytest.raises(SpecError, match="weights_at"):
        ROOMY.check_values({"weights_at": ["tape"]})


# Counted by hand: two blocks of 12.1 million weights in 16 bits, and so on.
def test_the_gpu_holds_two_blocks_their_gradients_one_layers_activations_and_logits():
    got = told(
        layers=10, hidden=1000, vocabulary=1000, batch=1, weights_at="cpu", optimizer_at="cpu"
    )
    block, tokens = (120e6 + 1e6) / 10, 1024
    assert got["weights_memory"] == pytest.approx(2 * 2 * block)
    assert got["gradients_memory"] == pytest.approx(2 * 2 * block)
    assert got["optimizer_memory"] == 0
    assert got["logits_memory"] == 4 * tokens * 1000
    # activations_at is gpu: two bytes a checkpoint, and the 34 of the layer that is made again
    assert got["activations_memory"] == pytest.approx(tokens * 1000 * (10 * 2 + 34))


def test_utilization_counts_no_work_that_is_done_twice():
    again, kept = told(**HOME | {"kept": 0.0}), told(**HOME)
    assert again["recompute_time"] > 0
    assert again["utilization"] < kept["utilization"] <= 0.9
    assert kept["model_rate"] / device_of("rtx-4090").flops_per_s["fp16"] == pytest.approx(
        kept["utilization"]
    )


HELD = HOME | {"activations_at": "nvme", "overlap": "transfers", "ssds": 1, "layers": 8}


def metrics_of(**changes):
    got = ROOMY.evaluate(Batch.of([HELD | changes]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


def test_held_layers_are_not_moved():
    moved = [metrics_of(held=held)["ssd_written"] for held in (0, 2, 8)]
    assert moved == pytest.approx([moved[0], 0.75 * moved[0], 0])


def test_a_held_layer_hides_the_turn_from_forward_to_backward():
    fast = dict.fromkeys(("ssd_read_bandwidth", "ssd_write_bandwidth", "pcie_bandwidth"), 400e9)
    turned, held = (metrics_of(**fast, held=one) for one in (0, 1))
    assert held["transfer_time"] == 0
    assert turned["transfer_time"] > 0.01 * turned["step_time"]


def test_slow_disks_are_the_limit_however_many_layers_hide_the_turn():
    slow = {"ssd_read_bandwidth": 1e6, "ssd_write_bandwidth": 2e6}
    found = metrics_of(**slow, held=1)
    # Seven layers are written at 2 MB/s and read at half of that.
    assert found["step_time"] == pytest.approx(found["ssd_written"] * 1.5e-6, rel=0.25)


def test_memory_has_held_layers_and_the_next_one():
    two, three = (metrics_of(held=held)["activations_memory"] for held in (1, 2))
    assert three == pytest.approx(1.5 * two)


def test_held_layers_have_no_effect_if_all_activations_are_on_the_gpu():
    got = ROOMY.evaluate(Batch.of([HELD | {"activations_at": "gpu", "held": 1}]))
    assert "all activations are on the GPU" in got.failures[0].reason
