"""Separate prefill replicas of ``clusters.serving``: their own plans, and the KV cache they send."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.serving.serving import Serving

PLAN = {"tp": 4, "batch": 32, "weight_format": "fp8", "kv_format": "bf16"}
APART = {**PLAN, "prefill_replicas": 2}
DENSE = {"model": "llama3-70b", "device": "h200-sxm", "isl": 2048, "osl": 256}
LATENT = {"model": "deepseek-v3", "system": "h200-hgx", "isl": 2048, "osl": 256}


def metrics(*designs, options=DENSE, **more):
    found = Serving(**{**options, **more}).evaluate(Batch.of([*designs]))
    assert found.failures == {}
    return found.columns


def test_prefill_has_the_degrees_of_decode_unless_it_has_its_own():
    own = {"prefill_tp": 4, "prefill_pp": 1, "prefill_ep": 1, "prefill_attention_dp": 1}
    for values in metrics(APART, {**APART, **own}).values():
        assert values[0] == values[1]


@pytest.mark.parametrize(
    "pool",
    [
        {"tp": 8},
        {"tp": 2, "pp": 4},
        {"tp": 4, "attention_dp": 2, "ep": 8},
        {"tp": 16},
        {"weight_format": "bf16", "tp": 16},
    ],
)
def test_prefill_takes_as_long_as_in_a_replica_of_its_own_plan(pool):
    decode = {**PLAN, "tp": 8, "pp": 2, "attention_dp": 2, "ep": 16}
    prefill = {f"prefill_{name}": value for name, value in {"ep": 1, "pp": 1, **pool}.items()}
    prefill = {"prefill_attention_dp": 1, **prefill, "prefill_replicas": 1}
    apart = metrics({**decode, **prefill}, options=LATENT, transfer_bandwidth=1e30)
    alone = metrics({**PLAN, **pool, "batch": 64}, options=LATENT)  # every stage has a step
    assert apart["ttft"][0] == pytest.approx(alone["ttft"][0], rel=1e-9)


def test_devices_are_those_of_both_pools():
    plan = {**APART, "replicas": 3, "prefill_tp": 2, "prefill_pp": 4}
    assert metrics(plan)["devices"][0] == 3 * 4 + 2 * 2 * 4


def test_each_device_of_decode_receives_what_it_keeps():
    """80 layers with 8 heads of 128 for keys and values, in 2 bytes, over four devices."""
    rate, size = 1e9, 2048 * 80 * 2 * 8 * 128 * 2 / 4
    plan = {**APART, "prefill_tp": 8}
    slow, fast = (metrics(plan, transfer_bandwidth=b)["ttft"][0] for b in (rate, 1e30))
    assert slow - fast == pytest.approx(size / rate)


def test_a_smaller_prefill_replica_sends_longer_than_each_device_receives():
    rate, size = 1e9, 2048 * 80 * 2 * 8 * 128 * 2 / 2
    plan = {**APART, "prefill_tp": 2}
    slow, fast = (metrics(plan, transfer_bandwidth=b)["ttft"][0] for b in (rate, 1e30))
    assert slow - fast == pytest.approx(size / rate)


def test_latents_are_sent_to_every_device():
    """Latents of 512 and rotary keys of 64 in 61 layers; prefill devices send them once each."""
    rate, size = "2 GB/s", 2048 * 61 * (512 + 64) * 2
    plan = {**APART, "tp": 8, "prefill_tp": 8}
    slow, fast = (
        metrics(plan, options=LATENT, transfer_bandwidth=b)["ttft"][0] for b in (rate, 1e30)
    )
    assert slow - fast == pytest.approx(size / 2e9)


def test_slow_links_limit_the_throughput():
    """Two prefill replicas of four devices send as much as two decode replicas receive."""
    size = 2048 * 80 * 2 * 8 * 128 * 2 / 4
    found = metrics({**APART, "replicas": 2}, transfer_bandwidth=1e7)
    assert found["throughput"][0] == pytest.approx(2 * 256 * 1e7 / size)


def test_pools_in_one_node_send_over_its_fabric_and_others_over_the_network():
    near = {**APART, "prefill_replicas": 1}
    first = metrics(near, {**near, "replicas": 2})["ttft"]
    assert first[0] < first[1] - 1e-3


def test_formats_of_prefill_are_its_own():
    narrow, wide = {**PLAN, "tp": 8}, {**PLAN, "tp": 8, "weight_format": "bf16"}
    apart = {**narrow, "prefill_replicas": 1, "prefill_weight_format": "bf16"}
    found, alone = metrics(apart, transfer_bandwidth=1e30), metrics(narrow, wide)
    assert found["ttft"][0] == alone["ttft"][1] > alone["ttft"][0]
    assert found["weights_memory"][0] == alone["weights_memory"][0]


def test_prefill_in_a_format_without_units_is_infeasible():
    served = Serving(model="llama3-8b", system=["h100-hgx", "b200-dgx"])
    plan = {"tp": 1, "batch": 8, "prefill_replicas": 1, "prefill_weight_format": "nvfp4"}
    found = served.evaluate(Batch.of([{**plan, "system": "h100-hgx"}]))
    assert found.failures[0].reason == "h100-sxm has no units for nvfp4"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"prefill_tp": 12}, "tensor parallel over 12 devices, but a node has 8"),
        ({"prefill_pp": 81}, "81 pipeline stages, but the model has 80 layers"),
        ({"prefill_attention_dp": 2}, "2 groups share the experts, but the model has 1"),
        ({"prefill_ep": 2}, "experts over expert parallel groups: 1 in 2"),
        ({"prefill_tp": 1}, "GiB short"),
    ],
)
def test_the_plan_of_prefill_is_checked_like_that_of_decode(plan, words):
    format_of_all = {"weight_format": "bf16"}
    found = Serving(**DENSE).evaluate(Batch.of([{**APART, "tp": 8, **format_of_all, **plan}]))
    assert words in found.failures[0].reason


@settings(max_examples=20)
@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 8]), st.integers(1, 256))
def test_links_and_prefill_never_add_to_the_time_of_a_token(pp, tp, batch):
    plan = {**APART, "batch": batch}
    usual, other = metrics(plan, {**plan, "prefill_pp": pp, "prefill_tp": tp})["tpot"]
    assert usual == other
