"""Bytes that a study counts as ``size``, and those of the file, purpose by purpose."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dse.interop.deployment.targets import target_of
from dse_evaluators.compression.recipe_evaluator import ByRecipe

onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")

COUNTED = ("codes", "scales", "unquantized")
"""Purposes of the bytes of a model; the rest is the container: names, shapes and settings."""

TARGETS = ("safetensors", "onnx", "gguf", "torch")
PLAIN = ("keep", "format fp16", "format bf16")
LAYERS = 2


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """An ONNX file of two layers with biases, and its data."""
    rng = np.random.default_rng(0)
    shapes = {"a": (96, 64), "b": (32, 96)}
    stored, nodes, signal = [], [], "x"
    for name, shape in shapes.items():
        for part, array in (
            ("weight", rng.normal(size=shape)),
            ("bias", rng.normal(size=shape[0])),
        ):
            tensor = onnx.numpy_helper.from_array(array.astype(np.float32), f"{name}.{part}")
            stored.append(tensor)
        inputs = [signal, f"{name}.weight", f"{name}.bias"]
        nodes.append(onnx.helper.make_node("Gemm", inputs, [name], transB=1))
        signal = name
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        "net",
        [onnx.helper.make_tensor_value_info("x", kind, ["n", 64])],
        [onnx.helper.make_tensor_value_info("b", kind, ["n", 32])],
        stored,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    model.ir_version = 10
    folder = tmp_path_factory.mktemp("sizes")
    onnx.save(model, str(folder / "net.onnx"))
    return {"model": str(folder / "net.onnx"), "data": rng.normal(size=(30, 64))}


def _bytes(options, recipe, target):
    """Return the bytes by purpose as the study counts them, and in the file."""
    model = ByRecipe(recipe=recipe, **options).deployed_model({})
    files = target_of(target).write(model)
    assert sum(files.bytes_by_purpose.values()) == len(files.content)
    return model.size_bytes, files.bytes_by_purpose


WITH_SCALES = [
    ("onnx", "format int8:channel,scale=fp32"),
    ("onnx", "format int8:tensor,scale=fp32"),
    ("onnx", "format int4:channel,scale=fp32"),
    ("onnx", "format int4:group=32,scale=fp32"),
    ("onnx", "format fp8_e4m3:channel,scale=fp32"),
    ("safetensors", "format fp8_e4m3:channel,scale=fp32"),
    ("gguf", "format int8:group=32"),
    ("gguf", "format int4:group=32"),
]


@pytest.mark.parametrize(("target", "recipe"), [*product(TARGETS, PLAIN), *WITH_SCALES])
def test_study_counts_the_bytes_of_the_file_without_its_container(options, target, recipe):
    study, file = _bytes(options, recipe, target)
    assert {one: study[one] for one in COUNTED} == {one: file[one] for one in COUNTED}


@pytest.mark.parametrize("text", ["int8:channel", "int4:channel", "int4:group=32"])
def test_packed_integers_of_safetensors_have_their_shapes_in_addition(options, text):
    study, file = _bytes(options, f"format {text},scale=fp32", "safetensors")
    assert file["scales"] - study["scales"] == 16 * LAYERS
    assert {one: study[one] for one in ("codes", "unquantized")} == {
        one: file[one] for one in ("codes", "unquantized")
    }


@pytest.mark.parametrize(
    ("target", "text", "more"),
    [("onnx", "int8:channel", 0), ("safetensors", "int4:group=32", 16), ("onnx", "int8", 0)],
)
def test_scales_of_fp16_take_twice_their_bytes_in_float32(options, target, text, more):
    study, file = _bytes(options, f"format {text}", target)
    assert file["scales"] == 2 * study["scales"] + more * LAYERS
    assert file["codes"] == study["codes"]


def test_blocks_of_gguf_have_a_scale_each(options):
    study, file = _bytes(options, "format int8:channel", "gguf")
    blocks = (96 * 64 + 32 * 96) // 32
    assert (study["scales"], file["scales"]) == (2 * (96 + 32), 2 * blocks)
    assert file["codes"] == study["codes"]
