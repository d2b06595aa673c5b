"""Served models whose layers differ: latent attention, windows, states, shared experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.serving.engine import engine
from dse_evaluators.clusters.serving.mixers import (
    StepTokens,
    decode_work,
    projections,
    prompt_work,
)
from dse_evaluators.clusters.serving.model_memory import text_bytes, weight_bytes
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.serving.share import ModelSharding
from dse_evaluators.clusters.simulator.serving_simulator import ServingSimulator
from dse_evaluators.workloads.parameter_count import sequence_bytes
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, layer_kinds

_ONE = np.ones(1)
ENGINE = engine(device_of("h100-sxm"), ["bf16"], np.zeros(1, dtype=np.intp))


def _share(model, devices=1.0):
    return ModelSharding(model=model, devices=devices * _ONE, cache_bytes=2.0 * _ONE)


def _tokens(sequences=0.0, context=0.0, prompt=0.0, length=1.0):
    columns = {"sequences": sequences, "context": context, "prompt": prompt, "length": length}
    return StepTokens(queries=_ONE, **{name: value * _ONE for name, value in columns.items()})


def test_decode_of_latent_attention_multiplies_the_latents():
    model = layer_kinds(TRANSFORMERS["deepseek-v3"])[-1]
    work = decode_work(_share(model), _tokens(sequences=3, context=1000))
    # 128 heads: scores over 512 + 64 elements, sums over 512; the latents are read once.
    assert work.flops == 2 * 3 * 1000 * 128 * (512 + 64 + 512)
    assert work.moved_bytes == 3 * 1000 * 576 * 2 + 2 * 3 * 128 * (512 + 64 + 512)


def test_prefill_of_latent_attention_multiplies_expanded_keys_and_values():
    model = layer_kinds(TRANSFORMERS["deepseek-v3"])[-1]
    work = prompt_work(_share(model), _tokens(prompt=100, length=100))
    assert work.flops == 2 * 100 * 50 * 128 * (192 + 128)


def test_decode_of_sparse_attention_scores_all_tokens_and_attends_to_2048():
    model = layer_kinds(TRANSFORMERS["deepseek-v3.2"])[-1]
    work = decode_work(_share(model), _tokens(sequences=3, context=10_000))
    # 64 heads of the indexer score 10,000 keys of 128 bytes and a scale, in fp32.
    index_flops = 2 * 3 * 10_000 * 64 * 128
    index_bytes = 3 * 10_000 * (128 + 4 + 2 * 4)
    assert work.flops == 2 * 3 * 2048 * 128 * (512 + 64 + 512) + index_flops
    read = 3 * 2048 * 576 * 2 + 2 * 3 * 128 * (512 + 64 + 512)
    assert work.moved_bytes == read + index_bytes


def test_prefill_of_sparse_attention_multiplies_latents_of_2048_tokens():
    model = layer_kinds(TRANSFORMERS["deepseek-v3.2"])[-1]
    work = prompt_work(_share(model), _tokens(prompt=100, length=8192))
    seen = 2048 - 2048**2 / (2 * 8192)
    wide = 128 * (512 + 64 + 512)
    assert work.flops == 2 * 100 * seen * wide + 2 * 100 * 4096 * 64 * 128
    short = prompt_work(_share(model), _tokens(prompt=100, length=100))
    assert short.flops == 2 * 100 * 50 * (128 * (192 + 128) + 64 * 128)


def test_decode_over_long_contexts_costs_less_with_sparse_attention_and_over_short_ones_more():
    def decode_s(model, isl):
        served = Serving(model=model, device="h200-sxm", isl=isl, osl=64, waiting=True)
        plan = {"tp": 8, "batch": 16, "weight_format": "fp8", "kv_format": "fp8"}
        columns = served.evaluate(Batch.of([plan])).columns
        return (columns["tpot"] - columns["prefill_time"])[0]

    assert decode_s("deepseek-v3.2", 120_000) < decode_s("deepseek-v3", 120_000)
    assert decode_s("deepseek-v3.2", 512) > decode_s("deepseek-v3", 512)


def test_projections_of_latent_attention_have_its_weights():
    model = layer_kinds(TRANSFORMERS["deepseek-v3"])[-1]
    works = projections(_share(model), 10.0 * _ONE, ENGINE)
    weights = (
        7168 * (1536 + 512 + 64) + 1536 * 128 * 192 + 512 * 128 * (128 + 128) + 128 * 128 * 7168
    )
    assert sum(one.flops for one in works) == 2 * 10 * weights


def test_devices_share_heads_but_each_keeps_the_latents():
    model = TRANSFORMERS["deepseek-v3"]
    one, eight = (text_bytes(_share(model, devices), 1000.0) for devices in (1, 8))
    assert one == eight == sequence_bytes(model, 1000)


def test_a_window_limits_the_context_of_decode():
    local = layer_kinds(TRANSFORMERS["gpt-oss-20b"])[-1]
    near, far = (
        decode_work(_share(local), _tokens(sequences=1, context=context)) for context in (128, 9000)
    )
    assert local.window_layers == 12
    assert near.flops == far.flops == 2 * 128 * 64 * (64 + 64)


@pytest.mark.parametrize("length", [100, 1000])
def test_a_window_limits_the_tokens_that_a_prompt_attends_to(length):
    local = layer_kinds(TRANSFORMERS["gpt-oss-20b"])[-1]
    work = prompt_work(_share(local), _tokens(prompt=length, length=length))
    # The t-th token sees min(t, 128) tokens; the continuous sum differs by half a token of each.
    seen = sum(min(t, 128) for t in range(1, length + 1))
    assert work.flops / (2 * 64 * 128) == pytest.approx(seen, abs=0.51 * length)


def test_a_state_is_read_and_written_once_per_step_whatever_the_context():
    model = TRANSFORMERS["codestral-mamba-7b"]
    near, far = (
        decode_work(_share(model), _tokens(sequences=2, context=context)) for context in (1, 9000)
    )
    state = 128 * 64 * 128 * 4 + 3 * (8192 + 2 * 8 * 128) * 2
    assert near.moved_bytes == far.moved_bytes
    assert near.moved_bytes == 2 * 2 * state + 2 * 2 * (8192 + 2 * 8 * 128 + 8192)


def test_weights_of_a_device_are_those_of_the_model():
    # Without vectors (norms, biases), which a server's memory hardly notices.
    model = TRANSFORMERS["deepseek-v3"]
    found = weight_bytes(_share(model), 2.0 * _ONE) / 2.0
    assert found == pytest.approx(671.026e9, rel=1e-5)


def test_layers_without_experts_are_replicated_in_each_attention_group():
    model = TRANSFORMERS["deepseek-v3"]
    share = replace(_share(model), groups=8.0 * _ONE, expert_groups=8.0 * _ONE)
    dense, routed = share.kinds
    assert (dense.model.experts, dense.groups, routed.groups) == (1, 1.0, 8.0)


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("deepseek-v3", {"tp": 1, "attention_dp": 8, "ep": 8}),
        ("deepseek-v3", {"tp": 8}),
        ("gpt-oss-120b", {"tp": 2}),
        ("gemma3-27b", {"tp": 1}),
        ("qwen3-next-80b-a3b", {"tp": 2}),
        ("codestral-mamba-7b", {"tp": 1}),
        ("glm-4.5-air", {"tp": 8}),
    ],
)
def test_models_of_every_kind_are_served_within_their_parts(name, plan):
    design = {"batch": 16, "weight_format": "fp8", **plan}
    found = Serving(model=name, device="h200-sxm").evaluate(Batch.of([design]))
    assert found.failures == {}
    parts = [column for key, column in found.columns.items() if key.endswith("_time")]
    assert sum(parts) == pytest.approx(found.columns["tpot"])
    assert all(np.isfinite(column).all() for column in found.columns.values())


def test_window_and_state_make_long_prompts_cheaper_to_keep():
    short, long = (
        Serving(model="gemma3-27b", device="h200-sxm", isl=isl, osl=2)
        .evaluate(Batch.of([{"tp": 1, "batch": 1}]))
        .columns["cache_memory"][0]
        for isl in (8190, 16382)
    )
    assert long - short == 8192 * 10 * 2 * 16 * 128 * 2  # only the 10 full layers grow


@pytest.mark.parametrize("name", ["gpt-oss-20b", "qwen3-next-80b-a3b", "codestral-mamba-7b"])
def test_the_simulator_reserves_windows_and_states_of_all_its_sequences(name):
    model = TRANSFORMERS[name]
    simulator = ServingSimulator(model=name, device="h200-sxm", requests=8, isl=1000, osl=24)
    designs = [{"tp": 2, "max_num_seqs": 4, "rate": 1.0}, {"tp": 2, "max_num_seqs": 8, "rate": 1.0}]
    found = simulator.evaluate(Batch.of(designs))
    grown = sum(
        kind.layers * 2 * kind.kv_heads * kind.head * 2.0
        for kind in layer_kinds(model)
        if not kind.window and not kind.state
    )
    fixed = sequence_bytes(model, 1024) - grown * 1024
    kept = found.columns["cache_memory"] - found.columns["cache_tokens"] * grown / 2
    assert kept == pytest.approx([4 * fixed / 2, 8 * fixed / 2])


def test_a_config_with_changes_is_a_model_of_its_own():
    same = Serving(model={"like": "llama3-8b"})
    ours = Serving(model="llama3-8b")
    deeper = Serving(model={"like": "llama3-8b", "layers": 64})
    batch = Batch.of([{"tp": 1, "batch": 8}])
    first, second, third = (one.evaluate(batch).columns["tpot"] for one in (same, ours, deeper))
    assert first == second
    assert 1.7 * first < third < 2.0 * first
    assert len({same.version, ours.version, deeper.version}) == 3
