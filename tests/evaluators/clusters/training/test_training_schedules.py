"""DualPipe and DualPipeV, ZeRO within groups of replicas and ZeRO++, as printed."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.chips import chips_of
from dse_evaluators.clusters.systems import system_of
from dse_evaluators.clusters.training.layer import layer
from dse_evaluators.clusters.training.plan_inputs import READINGS, plans
from dse_evaluators.clusters.training.training import Training
from dse_evaluators.clusters.training.training_plan import TrainingJob
from dse_evaluators.reading_table import Readings
from dse_evaluators.workloads.model_source import plain_transformer_of

MODEL = {"like": "llama2-70b", "vocabulary": 1}
SYSTEM = system_of("h100-dgx")
PLAN = {"tp": 8, "pp": 4, "dp": 8, "microbatch": 1, "zero": 1, "recompute": "selective"}


def evaluate(plan, **options):
    usual = {"model": MODEL, "global_batch": 512}
    return Training(**usual | options).evaluate(Batch.of([PLAN | plan]))


def metrics(plan, **options):
    found = evaluate(plan, **options)
    assert not found.failures
    return {name: values[0] for name, values in found.columns.items()}


def stage_s():
    """Seconds of a layer: forward and backward overlapped, backward, gradients of weights."""
    job = TrainingJob(
        model=plain_transformer_of(MODEL, "clusters.training"), sequence=4096, fused=True
    )
    plan = plans(Batch.of([PLAN]), Readings(READINGS).fixed({"global_batch": 512.0}))
    one = layer(job, plan, chips_of(SYSTEM.device), SYSTEM, overlap_tax=0.1)
    both_s = one.compute_s + one.recompute_s + one.tensor_s
    return both_s[0], one.backward_s[0], one.weights_s[0]


@pytest.mark.parametrize(
    ("schedule", "bubble"),
    [
        ("1f1b", lambda both, _back, _weights: (4 - 1) * 20 * both),
        ("zero_bubble", lambda both, _back, weights: (4 - 1) * 20 * (both - 2 * weights)),
        ("dualpipe", lambda both, back, weights: (4 / 2 - 1) * 20 * (both + back - 3 * weights)),
        ("dualpipe_v", lambda both, back, weights: (8 / 2 - 1) * 10 * (both + back - 3 * weights)),
    ],
)
def test_bubbles_are_those_of_the_table(schedule, bubble):
    """DeepSeek-V3, 2024, table 2, and deepseek-ai/DualPipe: 4 devices with 20 of 80 layers each."""
    assert metrics({"schedule": schedule})["bubble_time"] == pytest.approx(bubble(*stage_s()))


def test_memory_of_dualpipe_is_that_of_the_table():
    """Parameters of a device: 2 stages; activations: PP + 1 stages, in place of 1 and PP."""
    plain, dual, folded = (metrics({"schedule": one}) for one in ("1f1b", "dualpipe", "dualpipe_v"))
    assert dual["weights_memory"] == pytest.approx(2 * plain["weights_memory"], rel=1e-4)
    assert folded["weights_memory"] == pytest.approx(plain["weights_memory"], rel=1e-4)
    assert dual["activations_memory"] == pytest.approx(
        plain["activations_memory"] * 5 / 4, rel=0.01
    )
    # Eight stages of half the layers.
    assert folded["activations_memory"] == pytest.approx(
        plain["activations_memory"] * 9 / 8, rel=0.01
    )
    # Both copies of the weights share their optimizer state.
    assert dual["optimizer_memory"] == pytest.approx(plain["optimizer_memory"], rel=1e-4)


def test_dualpipe_hides_messages_between_stages():
    plain, dual = (metrics({"schedule": one}, overlap_tax=0.1) for one in ("1f1b", "dualpipe"))
    assert dual["pipeline_time"] == pytest.approx(0.1 * plain["pipeline_time"])


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"schedule": "dualpipe", "pp": 5}, "a pipeline of 5 stages, which is no multiple of 2"),
        ({"schedule": "dualpipe", "interleave": 2}, "places its stages itself: interleave 2"),
        ({"schedule": "dualpipe_v", "dp": 128}, "needs 8 microbatches or more"),
        ({"schedule": "dualpipe_v", "pp": 16}, "layers over pipeline stages: 80 in 32"),
        ({"zero_group": 4, "zero": 0}, "shards nothing in ZeRO stage 0"),
        ({"zero_group": 3}, "8 devices with the same weights are no multiple"),
        ({"secondary_group": 8}, "gathered in ZeRO stage 3, not in 1"),
        ({"secondary_group": 3, "zero": 3}, "among 8 devices, which is no multiple"),
        ({"quantized_weights": True}, "gathered in ZeRO stage 3, not in 1"),
        (
            {"quantized_weights": True, "zero": 3, "number_format": "fp8"},
            "weights have 1 already",
        ),
    ],
)
def test_plans_that_cannot_be_say_why(plan, words):
    assert words in evaluate(plan).failures[0].reason


def test_hybrid_sharding_sends_between_hosts_what_the_paper_says():
    """Zhao et al.: PyTorch FSDP, 2023, section 3.2.2: 2 M (W - 1) / (G W) for 3 M (W - 1) / W.

    W are all devices, G those of a host, here 512 and 8; a step of one microbatch. Gradients and
    weights of 2 bytes.
    """
    plan = {"tp": 1, "pp": 1, "zero": 3, "gradient_format": "bf16", "recompute": "full"}
    options = {"model": {"like": "llama2-7b", "vocabulary": 1}}
    hybrid = metrics(plan | {"dp": 512, "zero_group": 8}, **options)
    inside = metrics(plan | {"dp": 8, "microbatch": 1}, **options, sequence=1024)
    whole = metrics(plan | {"dp": 512}, **options)
    weights = 2.0 * (32 * (4 * 4096**2 + 3 * 4096 * 11008))
    assert whole["data_traffic"] == pytest.approx(3 * weights * 511 / 512, rel=1e-4)
    inside_bytes = inside["data_traffic"] / 64  # as many microbatches
    between = hybrid["data_traffic"] - inside_bytes
    assert between == pytest.approx(2 * weights * 511 / (8 * 512), rel=0.02)
    assert hybrid["optimizer_memory"] == pytest.approx(64 * whole["optimizer_memory"])


def test_a_group_of_all_replicas_is_the_default():
    assert metrics({"zero_group": 8}) == metrics({})


def test_quantized_and_second_weights_send_what_the_paper_says():
    """Wang et al.: ZeRO++, 2023: forward M / 2 for M, backward within the node; M is 2 bytes."""
    plan = {"tp": 1, "pp": 1, "zero": 3, "gradient_format": "bf16", "recompute": "full", "dp": 512}
    options = {"model": {"like": "llama2-7b", "vocabulary": 1}}
    weights = 2.0 * (32 * (4 * 4096**2 + 3 * 4096 * 11008))
    far = weights * 511 / 512
    usual, second, both = (
        metrics(plan | one, **options)
        for one in (
            {},
            {"secondary_group": 8},
            {"secondary_group": 8, "quantized_weights": True},
        )
    )
    assert usual["data_traffic"] == pytest.approx(3 * far, rel=1e-4)
    assert second["data_traffic"] == pytest.approx(2 * far + weights * 7 / 8, rel=1e-4)
    assert both["data_traffic"] == pytest.approx(1.5 * far + weights * 7 / 8, rel=1e-4)
    assert second["weights_memory"] - usual["weights_memory"] == pytest.approx(
        weights / 8, rel=1e-4
    )


def test_second_weights_spare_a_third_of_a_slow_network():
    """Gradients and forward gathers alone cross nodes."""
    plan = {"tp": 1, "pp": 1, "zero": 3, "gradient_format": "bf16", "recompute": "full", "dp": 512}
    slow = {"like": "h100-dgx", "network": {"adapters": 1, "adapter_bandwidth": "12.5 GB/s"}}
    options = {"model": {"like": "llama2-7b", "vocabulary": 1}, "system": slow}
    usual, second = (metrics(plan | {"secondary_group": size}, **options) for size in (0, 8))
    assert second["data_time"] == pytest.approx(usual["data_time"] * 2 / 3, rel=0.05)
