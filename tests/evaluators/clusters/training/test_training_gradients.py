"""Widths of gradients and activations, host transfers, and pipelines whose stages differ."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.training.training import Training

PLAN = {"tp": 8, "pp": 4, "dp": 8, "microbatch": 1, "zero": 1}


def metrics(plan, **options):
    usual = {"model": "llama2-70b", "global_batch": 512}
    found = Training(**usual | options).evaluate(Batch.of([PLAN | plan]))
    assert not found.failures
    return {name: values[0] for name, values in found.columns.items()}


def reason(plan, **options):
    usual = {"model": "llama2-70b", "global_batch": 512}
    return Training(**usual | options).evaluate(Batch.of([PLAN | plan])).failures[0].reason


def test_gradients_of_16_bits_take_half_the_memory_and_half_the_reduction():
    wide, narrow = metrics({}), metrics({"gradient_format": "bf16"})
    assert narrow["gradients_memory"] == pytest.approx(wide["gradients_memory"] / 2)
    assert narrow["weights_memory"] == wide["weights_memory"]
    # Gradients of 4 or 2 bytes and weights of 2: 6 or 4 bytes of each weight.
    assert narrow["data_traffic"] == pytest.approx(wide["data_traffic"] * 4 / 6)
    assert narrow["step_time"] < wide["step_time"]
    least = metrics({"gradient_format": "fp8"})
    assert least["gradients_memory"] == pytest.approx(wide["gradients_memory"] / 4)


def test_activations_of_8_bits_halve_what_is_kept_beside_inputs_of_products():
    # Korthikanti et al., 2022, figure 2 and equation 2: of 34 bytes without scores 2 are masks, the
    # others are 16 elements. Inputs of products: two norms' results, attention's, GeLU's (4).
    plan = {"tp": 1, "pp": 1, "dp": 1, "zero": 0, "number_format": "fp8", "recompute": "selective"}
    one = {"model": "megatron-22b", "sequence": 2048, "fused": False, "global_batch": 1}
    designs = [PLAN | plan | {"activation_format": form} for form in ("bf16", "fp8")]
    kept = Training(**one).evaluate(Batch.of(designs)).columns["activations_memory"]
    assert (kept[0] - kept[1]) / (48 * 2048 * 6144) == pytest.approx(16 - 7)


def test_activations_of_8_bits_halve_messages():
    plan = {"tp": 8, "pp": 4, "dp": 4, "number_format": "fp8", "recompute": "full", "microbatch": 4}
    wide, narrow = (metrics(plan | {"activation_format": one}) for one in ("bf16", "fp8"))
    assert narrow["pipeline_time"] == pytest.approx(wide["pipeline_time"] / 2, rel=0.05)
    assert narrow["tensor_time"] < 0.6 * wide["tensor_time"]


def test_activations_are_no_narrower_than_operands_of_products():
    refused = reason({"activation_format": "fp8", "number_format": "bf16"})
    assert refused == "activations of 1 byte, but products read operands of 2"


def test_whole_messages_between_stages_are_those_of_all_tensor_parallel_devices():
    split, whole = (
        metrics({"microbatch": 4, "recompute": "full"}, split_messages=one) for one in (True, False)
    )
    assert whole["pipeline_time"] == pytest.approx(8 * split["pipeline_time"], rel=0.05)


def test_streamed_optimizer_state_passes_once_for_each_microbatch():
    # A link so slow that nothing hides it; 64 microbatches.
    options = {"host_bandwidth": 1e7, "host_memory": 1e15}
    plan = {"offload": "optimizer"}
    once, streamed = metrics(plan, **options), metrics(plan, **options, stream_optimizer=True)
    assert once["offload_time"] == pytest.approx(once["host_memory"] / 1e7, rel=0.01)
    assert streamed["offload_time"] == pytest.approx(64 * once["offload_time"], rel=0.01)


def test_offloaded_gradients_leave_those_of_two_layers():
    far, farther = (
        metrics({"offload": offload}) for offload in ("optimizer", "gradients+optimizer")
    )
    assert farther["gradients_memory"] == pytest.approx(far["gradients_memory"] * 2 / 20)
    assert farther["optimizer_memory"] == far["optimizer_memory"]
    assert farther["offload_time"] > far["offload_time"]


def test_offloaded_optimizer_state_passes_through_two_layers():
    near, far = metrics({}), metrics({"offload": "optimizer"})
    assert far["optimizer_memory"] == pytest.approx(near["optimizer_memory"] * 2 / 20)


def test_offloaded_gradients_count_in_the_host():
    least = {"host_memory": 24e9}  # 3 GB a device: 2 GiB of optimizer state, 4.3 of gradients
    assert metrics({"offload": "optimizer", "dp": 64}, **least)["step_time"] > 0
    assert "share of its host" in reason({"offload": "gradients+optimizer", "dp": 64}, **least)


def test_stages_may_have_one_layer_more_where_that_is_said():
    plan = {"pp": 6, "dp": 4}
    assert "layers over pipeline stages" in reason(plan)
    longest, even = metrics(plan, uneven=True), metrics(PLAN | {"pp": 5, "dp": 4})
    # 80 layers: 14 on the fullest of six stages, 16 on each of five.
    assert longest["tensor_time"] == pytest.approx(even["tensor_time"] * 14 / 16)
    # Of 6 x 14 places 4 are empty, 2 of them at the ends: 5 x 14 - 2 layers elsewhere, and 4 x 16.
    assert longest["bubble_time"] == pytest.approx(even["bubble_time"] * 68 / 64)


def test_interleaving_with_any_number_of_microbatches_where_that_is_said():
    plan = {"interleave": 2, "dp": 8, "global_batch": 144}
    options = {"model": "llama2-70b", "global_batch": None}
    assert "no multiple of 4 stages" in reason(plan, **options)
    short = metrics(plan, **options, uneven=True)
    full = metrics(plan | {"global_batch": 128}, **options, uneven=True)
    # 18 microbatches are 2 short of five rounds over 4 stages: (3 + 2) / 2 passes in place of 3 / 2.
    assert short["bubble_time"] == pytest.approx(full["bubble_time"] * 5 / 3)


def test_stages_of_a_device_divide_its_layers_also_where_devices_differ():
    plan = {"pp": 32, "interleave": 2, "tp": 2}
    assert "layers of the fullest device" in reason(plan, uneven=True)
