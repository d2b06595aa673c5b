"""Formats of the compression side on the array: elements, scales in the traffic, and refusals."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.systolic.systolic import Systolic
from dse_evaluators.compression import model_layers
from dse_evaluators.formats.elements import element_of
from dse_evaluators.hardware.macs import mac_of, word_of

DESIGN = {"rows": 16, "cols": 16, "filter_sram": 16384.0, "dataflow": "ws"}
SCALED = [
    "int8:channel",
    "int4:channel,asym",
    "int4:channel,full-range",
    "fp8_e4m3:channel",
    "fp8_e4m3:block=128x128,tail=short",
    "int4:group=32,asym,tail=short",
    "mx:e2m3,tail=short",
    "nvfp4:tail=short",
    "bfp:m3,b16,tail=short",
    "ternary",
]


def found(evaluator: Systolic, **design):
    metrics = evaluator.evaluate(Batch.of([{**DESIGN, **design}]))
    assert not metrics.failures, metrics.failures
    return {name: float(values[0]) for name, values in metrics.columns.items()}


@pytest.mark.parametrize("text", SCALED)
def test_weights_are_as_large_on_the_array_as_in_the_compressed_model(text):
    layers = ("conv1.weight", "conv2.weight", "conv3.weight", "fc1.weight", "fc2.weight")
    bits = sum(model_layers.cost("mnist-cnn", name, f"format {text}").stored for name in layers)
    assert found(Systolic(workload="mnist-cnn"), weight_format=text)["model_size"] * 8 == bits


def test_scales_are_moved_and_do_not_change_the_multipliers():
    evaluator = Systolic(workload="mnist-cnn", activation_format="int8")
    bare, scaled = (found(evaluator, weight_format=text) for text in ("int4", "int4:channel"))
    filters = 16 + 32 + 32 + 64 + 10
    assert scaled["dram_traffic"] - bare["dram_traffic"] == 2 * filters
    assert scaled["area"] == bare["area"]
    assert scaled["mac_energy"] == bare["mac_energy"]
    assert scaled["dram_energy"] > bare["dram_energy"]


def test_scales_of_activations_are_counted_with_each_row():
    evaluator = Systolic(workload="paradnn-fc:layers=1,nodes=64,input=64,output=64,batch=10")
    bare, scaled = (found(evaluator, activation_format=text) for text in ("int8", "mxint8"))
    moved = 2 * 10 * (64 + 64)  # inputs and results of two layers, each once
    assert scaled["dram_traffic"] - bare["dram_traffic"] == pytest.approx(moved / 32)


def test_kept_weights_of_a_pattern_carry_the_scales_of_pruned_ones():
    evaluator = Systolic(
        workload="paradnn-fc:layers=1,nodes=64,input=64,output=64,batch=10", n_m="2:4"
    )
    bare, scaled = (found(evaluator, weight_format=text) for text in ("int4", "int4:group=4"))
    assert scaled["model_size"] - bare["model_size"] == 2 * 64 * 64 / 4 * 2


def test_a_format_that_does_not_fit_a_layer_is_infeasible():
    evaluator = Systolic(workload="mnist-cnn")
    metrics = evaluator.evaluate(
        Batch.of([{**DESIGN, "weight_format": text} for text in ("int4:group=32", "int4")])
    )
    assert list(metrics.failures) == [0]
    assert "tail=short" in metrics.failures[0].reason


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("nf4", "int4:group=64"),
        ("kmeans:4", "int4:tensor"),
        ("posit:8,1", "int8:tensor"),
        ("binary", "int2:channel"),
        ("tf32", "fp32"),
        ("fp:e4m2", "fp8_e4m3"),
    ],
)
def test_a_format_without_a_multiplier_is_refused_with_the_nearest_one(text, near):
    with pytest.raises(SpecError, match=f"did you mean '{near}'"):
        Systolic(workload="mnist-cnn", weight_format=text)
    assert element_of(near)


def test_designs_of_many_formats_are_each_as_alone():
    evaluator = Systolic(workload="mnist-cnn")
    texts = ["int8", "int4:channel", "ternary", "int8:channel"] * 3
    rows = [{**DESIGN, "weight_format": text, "rows": 8 + at} for at, text in enumerate(texts)]
    together = evaluator.evaluate(Batch.of(rows)).columns["energy"].tolist()
    assert together == [found(evaluator, **row)["energy"] for row in rows]


def test_multipliers_of_the_same_block_cost_the_same_by_both_names():
    assert word_of("mx:e2m1") == word_of("mxfp4")
    assert mac_of(word_of("int4:group=16"), word_of("int8")).scale_j == pytest.approx(
        2 * mac_of(word_of("int4:group=32"), word_of("int8")).scale_j
    )
    assert word_of("int8:channel").element == word_of("int8").element
