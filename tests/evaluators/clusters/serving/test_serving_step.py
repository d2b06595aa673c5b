"""One step of a served model: what more bandwidth, tokens and devices do to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.serving.engine import engine
from dse_evaluators.clusters.serving.fabric import fabric_of
from dse_evaluators.clusters.serving.inference_step import ModelSharding, StepTokens, step
from dse_evaluators.clusters.training.device_memory import block_weights
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

MODEL = TRANSFORMERS["llama3-8b"]
FABRIC = fabric_of("h200-sxm")


def one(value):
    return np.array([float(value)])


def kernels(number_format="fp8"):
    return engine(device_of("h200-sxm"), [number_format], np.array([0]))


def taken(kernels, devices=1, sequences=16, prompt=0):
    share = ModelSharding(model=MODEL, devices=one(devices), cache_bytes=one(2))
    tokens = StepTokens(
        sequences=one(sequences),
        queries=one(1),
        context=one(1000),
        prompt=one(prompt),
        length=one(2048),
    )
    return step(share, tokens, kernels, FABRIC)


sizes = st.integers(1, 512)
devices = st.sampled_from([1, 2, 4, 8])


@given(devices, sizes, st.integers(0, 2048), st.floats(1.0, 16.0))
def test_more_bandwidth_never_makes_a_step_slower(devices, sequences, prompt, more):
    usual = kernels()
    faster = replace(usual, bytes_per_s=more * usual.bytes_per_s)
    before, after = (taken(each, devices, sequences, prompt).total_s for each in (usual, faster))
    assert after[0] <= before[0] * (1 + 1e-12)


@given(devices, sizes, st.integers(0, 2048), st.floats(1.0, 16.0))
def test_a_higher_rate_never_makes_a_step_slower(devices, sequences, prompt, more):
    usual = kernels()
    faster = replace(
        usual,
        flops_per_s=more * usual.flops_per_s,
        plain_flops_per_s=more * usual.plain_flops_per_s,
    )
    before, after = (taken(each, devices, sequences, prompt).total_s for each in (usual, faster))
    assert after[0] <= before[0] * (1 + 1e-12)


@given(devices, sizes, st.integers(0, 2047))
def test_a_longer_piece_of_a_prompt_never_makes_a_step_faster(devices, sequences, prompt):
    before, after = (taken(kernels(), devices, sequences, n).total_s for n in (prompt, prompt + 1))
    assert after[0] >= before[0] * (1 - 1e-12)


def test_narrow_weights_move_fewer_bytes():
    wide, narrow = (taken(kernels(text)).moved_bytes[0] for text in ("bf16", "fp8"))
    assert narrow < wide


def test_a_token_multiplies_by_every_weight_once():
    """Two operations for each weight of layers and head, and four for each seen place and head."""
    share = ModelSharding(model=MODEL, devices=one(1), cache_bytes=one(2))
    tokens = StepTokens(
        sequences=one(1), queries=one(1), context=one(100), prompt=one(0), length=one(1)
    )
    found = step(share, tokens, kernels(), FABRIC)
    weights = MODEL.layers * block_weights(MODEL) + MODEL.vocabulary * MODEL.hidden
    seen = 4 * MODEL.layers * 100 * MODEL.hidden
    assert found.flops[0] == pytest.approx(2 * weights + seen, rel=1e-12)


def test_the_weights_bound_what_a_token_can_cost():
    """No step is faster than the sheet's bandwidth lets the weights through."""
    device = device_of("h200-sxm")
    least_s = MODEL.layers * block_weights(MODEL) / device.dram_bytes_per_s
    assert taken(kernels(), sequences=1).total_s[0] > least_s


def test_devices_that_share_a_copy_divide_its_work():
    alone, shared = (taken(kernels(), devices=count).flops[0] for count in (1, 8))
    assert shared == pytest.approx(alone / 8)


def test_one_device_tells_nobody():
    assert taken(kernels(), devices=1).collectives_s[0] == 0
    assert taken(kernels(), devices=2).collectives_s[0] > 0
