"""An ONNX file in the formats that a runtime computes in: quality, size and time are real."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.compression.onnx_models import OnnxModels
from dse_evaluators.compression.onnx_recipe import OnnxRecipe, onnx_recipe_of
from dse_evaluators.workloads import onnx_runtime
from dse_evaluators.workloads.magika_files import PACKAGES


@pytest.fixture(scope="module")
def measured(asset):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    pytest.importorskip("onnx", reason="needs the extra 'onnx'")
    folders = [asset(name) for name in PACKAGES]
    assert folders

    def told(**design) -> dict[str, float]:
        metrics = OnnxModels(repeats=3, warmup=1).evaluate(Batch.of([design]))
        assert not metrics.failures
        return {name: float(values[0]) for name, values in metrics.columns.items()}

    return told


@pytest.mark.slow
def test_fp32_is_the_file_as_it_ships(measured) -> None:
    found = measured(runtime_format="fp32")
    assert (found["size"], found["divergence"], found["mismatch"]) == (3_163_737, 0, 0)


@pytest.mark.slow
def test_static_int8_is_a_quarter_of_the_size_and_reads_as_well(measured) -> None:
    whole, static = measured(runtime_format="fp32"), measured(runtime_format="static_int8")
    assert static["size"] < 0.27 * whole["size"]
    assert 0 < static["divergence"] < 0.01
    assert abs(static["accuracy"] - whole["accuracy"]) <= 2 / 70


@pytest.mark.proof
def test_static_int8_is_much_faster_on_a_machine_that_does_nothing_else(asset) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    pytest.importorskip("onnx", reason="needs the extra 'onnx'")
    assert all(asset(name) for name in PACKAGES)
    rows = [{"runtime_format": name} for name in ("fp32", "static_int8")]
    whole, static = OnnxModels(repeats=50).evaluate(Batch.of(rows)).columns["latency"]
    assert static < 0.7 * whole


@pytest.mark.slow
def test_quantising_what_is_no_product_destroys_the_network(measured) -> None:
    assert measured(runtime_format="static_int8", operators="all")["accuracy"] < 0.5


@pytest.mark.slow
def test_dynamic_int8_is_as_small_and_nearer_to_the_whole(measured) -> None:
    dynamic, static = (
        measured(runtime_format="dynamic_int8"),
        measured(runtime_format="static_int8"),
    )
    assert dynamic["size"] == pytest.approx(static["size"], rel=0.02)
    assert dynamic["divergence"] < static["divergence"]


@pytest.mark.slow
def test_a_format_of_weights_changes_what_they_would_take_and_not_the_file(measured) -> None:
    found = measured(runtime_format="int4:channel")
    assert found["size"] == pytest.approx(3_163_737, rel=1e-3)
    # 781,376 weights of 4 bits with 790 scales of 16, and 2,838 other parameters of 32
    assert found["weight_size"] == 781_376 / 2 + (64 + 512 + 214) * 2 + 2_838 * 4


@pytest.mark.slow
def test_a_format_that_is_none_is_the_fault_of_its_row(measured) -> None:
    rows = [{"runtime_format": "int4:channel"}, {"runtime_format": "int4:canal"}]
    told = OnnxModels(repeats=2, warmup=0).evaluate(Batch.of(rows))
    assert measured
    assert list(told.failures) == [1]


def test_what_a_format_has_no_use_for_makes_no_other_file() -> None:
    assert OnnxRecipe(calibration="entropy", operators="all").of_file == OnnxRecipe().of_file
    dynamic = OnnxRecipe(runtime_format="dynamic_int8", operators="all")
    other = OnnxRecipe(runtime_format="dynamic_int8", operators="all", calibration="entropy")
    assert dynamic.of_file == other.of_file != OnnxRecipe(runtime_format="dynamic_int8").of_file
    static = OnnxRecipe(runtime_format="static_int8", calibration="entropy", optimization="none")
    assert static.of_file == OnnxRecipe(runtime_format="static_int8", calibration="entropy")


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("operators", "product", "products"),
        ("calibration", "min", "minmax"),
        ("optimization", "full", "valid"),
        ("per_channel", "yes", "true or false"),
        ("runtime_format", "static_int", "static_int8"),
    ],
)
def test_a_choice_that_is_none_is_refused(name, value, hint) -> None:
    with pytest.raises(SpecError) as refused:
        onnx_recipe_of({name: value})
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "options",
    [{"model": "bert"}, {"split": "train"}, {"batch": 0}, {"repeats": 1}, {"warmup": True}],
)
def test_an_option_that_cannot_be_is_refused(options) -> None:
    with pytest.raises(PluginError):
        OnnxModels(**options)


def test_a_library_that_is_not_there_is_told_with_how_to_get_it() -> None:
    with pytest.raises(PluginError, match="need the package 'onnxruntim'") as refused:
        onnx_runtime.library("onnxruntim.quantization")
    assert "dse-engine[onnx]" in refused.value.hint
