"""The evaluator ``accelerators.operator-shares``: bytes by hand, classes, the user's own things."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import EvaluationError, SpecError
from dse_evaluators.accelerators.devices.calibrations import calibration_on
from dse_evaluators.accelerators.devices.devices import DEVICES
from dse_evaluators.accelerators.devices.operator_shares import OperatorShares
from dse_evaluators.accelerators.devices.operators import (
    OperatorDevice,
    OperatorRun,
    operators_of,
    times_of,
)
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import RooflineConstants
from dse_evaluators.workloads.catalogue import table_of
from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.layers import convolution, product
from dse_evaluators.workloads.transformer import TokenBatch, attention

DESIGN = {"device": "a100-sxm-80gb", "batch": 2.0}
ONE = np.ones(1)


def metrics_of(evaluator, **changes):
    """The metrics of one design."""
    got = evaluator.evaluate(Batch.of([DESIGN | changes]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


@pytest.fixture
def byte_a_second():
    """A device that moves one byte a second, and whose products and launches take no time."""
    device = replace(DEVICES["a100-sxm-80gb"], dram_bytes_per_s=1.0, flops_per_s={"fp16": 1e30})
    constants = RooflineConstants(compute_share=1.0, memory_share=1.0, exponent=1.0, launch_s=0.0)
    calibration = replace(calibration_on(device, "fp16"), constants=constants)
    return OperatorDevice(device=device, recipe=RECIPES["fp16"], calibration=calibration)


def run(**changes):
    fields = {"batch": ONE, "convolution_passes": 0 * ONE, "linear_passes": 0 * ONE}
    return OperatorRun(**{**fields, "temporal_bandwidth": ONE, **changes})


# Four heads of width 32, 64 queries and 48 keys: 2 bytes a number.
HEADS = LayerTable(layers=attention("one", (4, 4), 32, TokenBatch(fresh=64, context=48)))
QUERIES, KEYS, SCORES = 2 * 4 * 64 * 32, 2 * 4 * 48 * 32, 2 * 4 * 64 * 48


@pytest.mark.parametrize(
    ("fused", "moved"),
    [
        (True, 2 * QUERIES + 2 * KEYS),  # queries and results, keys and values
        (False, 2 * QUERIES + 2 * KEYS + 4 * SCORES),  # written, softmax reads and writes, read
    ],
)
def test_attention_moves_the_bytes_that_one_counts_by_hand(byte_a_second, fused, moved):
    found = times_of(operators_of(HEADS), byte_a_second, run(), fused=fused)
    assert found.by_class[:, 0] == pytest.approx([0, 0, moved, 0])


def test_attention_along_frames_is_separate_and_slowed_down(byte_a_second):
    layers = attention("video-temporal", (4, 4), 32, TokenBatch(fresh=64, context=48))
    table = LayerTable(layers=(*HEADS.layers, *layers))
    slow = run(temporal_bandwidth=0.5 * ONE)
    found = times_of(operators_of(table), byte_a_second, slow, fused=True)
    once = 2 * QUERIES + 2 * KEYS
    assert found.temporal_s == pytest.approx(2 * once)
    assert found.total_s == pytest.approx(3 * once)


def test_elementwise_kernels_read_and_write_the_result_of_each_class(byte_a_second):
    layers = (convolution("seen", 8, 3, 3, 16), product("dense", 10, 20, 30))
    runs = run(convolution_passes=3 * ONE, linear_passes=ONE)
    found = times_of(operators_of(LayerTable(layers=layers)), byte_a_second, runs, fused=True)
    assert found.by_class[3] == pytest.approx(3 * 2 * 2 * 8 * 8 * 16 + 2 * 2 * 10 * 30)


def test_products_that_do_not_follow_one_another_are_no_attention(byte_a_second):
    scores, mix = HEADS.layers
    apart = LayerTable(layers=(scores, product("between", 1, 1, 1), mix))
    assert operators_of(apart).second is None
    assert operators_of(HEADS).second is not None


def test_a_network_of_convolutions_has_no_sequences():
    batch = Batch.of([DESIGN])
    got = OperatorShares(workload="resnet50").evaluate(batch)
    assert set(got.undefined) == {"temporal_share", "longest_sequence", "shortest_sequence"}
    assert got.columns["attention_share"].item() == 0
    assert got.columns["fused_gain"].item() == 1


def test_shares_and_times_are_those_of_the_latency():
    found = metrics_of(OperatorShares(workload="sd-unet"))
    classes = ("convolution", "linear", "attention", "elementwise")
    assert sum(found[f"{name}_share"] for name in classes) == pytest.approx(1)
    assert sum(found[f"{name}_time"] for name in classes) == pytest.approx(found["latency"])
    assert (found["longest_sequence"], found["shortest_sequence"]) == (4096, 64)


def test_a_config_of_the_user_is_a_workload(tmp_path):
    content = {"_class_name": "UNet2DConditionModel", "cross_attention_dim": 768}
    (tmp_path / "config.json").write_text(json.dumps(content))
    own = OperatorShares(workload=f"{tmp_path}:latent=32")
    named = OperatorShares(workload="sd-unet:latent=32")
    assert metrics_of(own) == metrics_of(named)
    assert own.version != named.version


def test_a_device_of_the_user_has_its_own_bandwidth(tmp_path):
    (tmp_path / "mine.yaml").write_text("{like: a100-sxm-80gb, bandwidth: 1 TB/s}")
    evaluator = OperatorShares(workload="sd-unet", platforms={"mine": f"{tmp_path}/mine.yaml"})
    slower = metrics_of(evaluator, device="mine")["elementwise_time"]
    assert slower > 1.3 * metrics_of(evaluator)["elementwise_time"]


def test_the_operations_of_all_operators_are_those_of_the_layers():
    operators = operators_of(table_of("modelscope-unet"))
    recipe = RECIPES["fp16"]
    first = operators.first.work(recipe, ONE).flops * operators.repeats
    assert operators.second is not None
    second = operators.second.work(recipe, ONE).flops * operators.repeats[operators.fused]
    assert first.sum() + second.sum() == 2 * table_of("modelscope-unet").macs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "sd-unett"}, "sd-unet"),
        ({"workload": "sd-unet", "device": "h100-smx"}, "h100-sxm"),
        ({"workload": "sd-unet", "attention": "flash"}, "fused"),
        ({"workload": "sd-unet", "batch": 0.5}, "1"),
    ],
)
def test_a_wrong_option_names_the_nearest(options, message):
    with pytest.raises((SpecError, EvaluationError)) as refused:
        OperatorShares(**options)
    assert message in f"{refused.value.problem} {refused.value.hint}"


def test_a_format_without_units_is_infeasible():
    batch = Batch.of([{**DESIGN, "device": "v100-sxm2", "format": "fp8"}])
    assert OperatorShares(workload="sd-unet").evaluate(batch).failures[0].kind == "infeasible"
