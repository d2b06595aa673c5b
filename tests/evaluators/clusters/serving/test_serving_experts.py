"""Experts on the devices of a served model: what is read, what is multiplied, what is sent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.serving import experts
from dse_evaluators.clusters.serving.engine import engine
from dse_evaluators.clusters.serving.fabric import fabric_of
from dse_evaluators.clusters.serving.inference_step import StepTokens, step
from dse_evaluators.clusters.serving.model_memory import weight_bytes
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.serving.share import ModelSharding
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

DENSE = TRANSFORMERS["llama3-8b"]
MANY = TRANSFORMERS["qwen3-235b-a22b"]
KERNELS = engine(device_of("h200-sxm"), ["fp8"], np.array([0]))
FABRIC = fabric_of("h200-sxm")

counts = st.sampled_from([1, 2, 4, 8])


def one(value):
    return np.array([float(value)])


def share(model, devices=8, ep=1, groups=1):
    return ModelSharding(
        model=model,
        devices=one(devices),
        cache_bytes=one(1),
        groups=one(groups),
        expert_groups=one(ep),
    )


def taken(shared, sequences=16, kernels=KERNELS, fabric=FABRIC):
    tokens = StepTokens(
        sequences=one(sequences),
        queries=one(1),
        context=one(1000),
        prompt=one(0),
        length=one(2048),
    )
    return step(shared, tokens, kernels, fabric)


def outcome(*designs, **options):
    usual = {"model": "qwen3-235b-a22b", "device": "h200-sxm", "isl": 1024, "osl": 256}
    usual_plan = {"tp": 8, "batch": 32, "weight_format": "fp8", "kv_format": "fp8"}
    batch = Batch.of([{**usual_plan, **each} for each in designs])
    return Serving(**{**usual, **options}).evaluate(batch)


@given(st.integers(1, 64), st.integers(1, 4096))
def test_one_token_meets_its_experts_and_many_meet_all(chosen, tokens):
    model = replace(MANY, experts=64, active_experts=chosen)
    assert experts.count_touched_experts(model, one(1))[0] == pytest.approx(chosen)
    assert chosen - 1e-9 <= experts.count_touched_experts(model, one(tokens))[0] <= 64
    assert experts.count_touched_experts(model, one(1e9))[0] == pytest.approx(64)


def test_two_tokens_meet_fifteen_and_a_half_experts_of_128():
    """Each chooses 8: 8 + 8 (1 - 8/128)."""
    assert experts.count_touched_experts(MANY, one(2))[0] == pytest.approx(15.5)


@given(st.integers(1, 512), counts)
def test_one_expert_for_all_is_a_dense_layer_exactly(sequences, devices):
    alike = replace(DENSE, experts=1, active_experts=1)
    assert taken(share(alike, devices), sequences) == taken(share(DENSE, devices), sequences)


@given(st.integers(1, 512))
def test_two_halves_that_all_tokens_choose_multiply_as_much_as_the_whole(sequences):
    halves = replace(DENSE, experts=2, active_experts=2, ffn=DENSE.ffn // 2)
    whole, split = (taken(share(model), sequences).flops[0] for model in (DENSE, halves))
    assert split == pytest.approx(whole, rel=1e-12)


@given(st.integers(1, 512), counts)
def test_who_holds_which_experts_never_changes_the_work(sequences, ep):
    together, apart = (taken(share(MANY, ep=groups), sequences).flops[0] for groups in (1, ep))
    assert apart == pytest.approx(together, rel=1e-12)


@given(counts)
def test_who_holds_which_experts_never_changes_the_weights(ep):
    sizes = [weight_bytes(share(MANY, ep=groups), one(1))[0] for groups in (1, ep)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-12)


def test_few_tokens_read_fewer_weights_than_many():
    moved = [taken(share(MANY), sequences).moved_bytes[0] for sequences in (1, 8, 64)]
    assert moved[0] < moved[1] / 3 < moved[2] / 6


def test_the_weights_are_those_of_the_name():
    """Qwen3-235B-A22B: 235 billion weights, 22 of which a token meets (Qwen3 report, 2025)."""
    kept = weight_bytes(share(MANY, devices=1), one(2))[0] / 2
    assert kept == pytest.approx(235e9, rel=0.01)
    met = taken(share(MANY, devices=1), sequences=1).flops[0] / 2
    seen = 2 * MANY.layers * 1000 * MANY.heads * MANY.head
    embedding = MANY.vocabulary * MANY.hidden
    assert met - seen + embedding == pytest.approx(22e9, rel=0.01)


@given(st.sampled_from([(8, 1), (4, 2), (1, 8)]), st.integers(1, 256), st.floats(1.0, 8.0))
def test_faster_memory_and_links_never_make_experts_slower(split, sequences, more):
    devices, groups = split
    shared = share(MANY, devices, ep=8, groups=groups)
    usual_s = taken(shared, sequences).total_s[0]
    memory = replace(KERNELS, bytes_per_s=more * KERNELS.bytes_per_s)
    links = replace(FABRIC, rate=more)
    assert taken(shared, sequences, kernels=memory).total_s[0] <= usual_s * (1 + 1e-12)
    assert taken(shared, sequences, fabric=links).total_s[0] <= usual_s * (1 + 1e-12)


def test_one_device_tells_nobody_about_experts():
    assert taken(share(MANY, devices=1)).collectives_s[0] == 0


def test_groups_with_their_own_texts_send_them_to_the_experts():
    model = replace(MANY, kv_heads=8)  # fewer than devices would be there twice
    together, apart = (share(model, 8 // groups, ep=8, groups=groups) for groups in (1, 8))
    seconds = [
        taken(each, sequences).collectives_s[0] for each, sequences in ((together, 64), (apart, 8))
    ]
    assert 0 < seconds[1] != seconds[0]
    work = [taken(each, sequences).flops[0] for each, sequences in ((together, 64), (apart, 8))]
    assert work[1] == pytest.approx(work[0], rel=1e-12)


def test_groups_with_their_own_texts_keep_fewer_keys_and_values_twice():
    """Four heads of keys and values on eight devices are there twice; on one device once."""
    usual, own = outcome({"batch": 64}, {"tp": 1, "attention_dp": 8, "ep": 8, "batch": 8}).columns[
        "cache_memory"
    ]
    assert own == pytest.approx(usual / 2)


@pytest.mark.parametrize(
    "change",
    [
        {"ep": 4},
        {"tp": 4, "attention_dp": 2},
        {"tp": 4, "pp": 2},
        {"weight_bits": 4.5},
        {"kv_bits": 4.5},
    ],
)
def test_every_knob_of_experts_and_words_moves_a_metric(change):
    columns = outcome({}, change).columns
    moved = [name for name, values in columns.items() if values[0] != values[1]]
    assert "tpot" in moved


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"ep": 3}, "experts over expert parallel groups: 128 in 3"),
        ({"tp": 4, "ep": 8}, "devices over expert parallel groups: 4 in 8"),
        ({"tp": 4, "attention_dp": 3}, "experts shared by 12 devices, but a node has 8"),
        ({"pp": 95}, "95 pipeline stages, but the model has 94 layers"),
    ],
)
def test_experts_that_there_cannot_be_say_why(plan, words):
    assert words in outcome(plan).failures[0].reason


def test_a_dense_model_has_no_experts_to_share():
    failure = outcome({"tp": 4, "attention_dp": 2}, model="llama3-70b").failures[0]
    assert failure.reason == "2 groups share the experts, but the model has 1"
