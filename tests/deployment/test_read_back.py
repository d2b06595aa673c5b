"""Each file of a deployed model, read back by the program that it is for."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch

from dse.errors import StudyError
from dse.interop.deployment.targets import TARGETS, target_of
from dse_evaluators.compression import recipe_runner
from dse_evaluators.compression.model_layers import weights
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.workload import Signals

LM = "shakespeare-lm"
CNN = "digits-cnn"
OPTIONAL = "not in the test group: pip install"


def evaluator(recipe, model=LM):
    """The evaluator of a recipe; GPTQ has no calibration inputs of the embedding."""
    others = {"embed": f"format {recipe.partition(' ')[2]}"} if "gptq" in recipe else {}
    return ByRecipe(model=model, recipe=recipe, layers=others)


def deployed(recipe, model=LM):
    return evaluator(recipe, model).deployed_model({})


def same_bits(left, right):
    return np.array_equal(np.asarray(left, dtype=np.float32).view(np.uint32), right.view(np.uint32))


def written(target, model, tmp_path):
    files = target_of(target).write(model)
    file = tmp_path / f"model{TARGETS[target].extension}"
    file.write_bytes(files.content)
    return file, files


@pytest.mark.parametrize(
    "recipe",
    [
        "format int4:group=32,asym",
        "gptq int4:channel",
        "gptq-act-order int4:group=32",
        "svd 8/fp16",
    ],
)
def test_the_model_has_the_values_that_are_measured(recipe):
    model = deployed(recipe)
    measured = weights(LM, evaluator(recipe).recipes({}))
    assert all(same_bits(model.tensors[name].values, measured[name]) for name in measured)
    assert set(model.tensors) == set(workload_of(LM).parameters)


@pytest.mark.parametrize(
    ("recipe", "format_", "modules"),
    [
        ("format int8:channel", "pack-quantized", 14),
        ("format int8", "pack-quantized", 14),
        ("format int4:group=32", "pack-quantized", 14),
        ("format int4:group=32,asym", "pack-quantized", 14),
        ("gptq-act-order int4:group=32", "pack-quantized", 14),
        ("format int4:channel,asym,full-range,scale=fp32", "pack-quantized", 14),
        ("format fp8_e4m3:channel", "float-quantized", 14),
        ("format fp8_e4m3", "float-quantized", 14),
        ("format fp8_e4m3:block=12x32", "float-quantized", 14),
        ("format fp8_e4m3:block=128x128,scale=fp32,tail=short", "float-quantized", 14),
    ],
)
def test_compressed_tensors_reads_the_weights_bit_for_bit(recipe, format_, modules, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch_files = pytest.importorskip("safetensors.torch", reason=f"{OPTIONAL} safetensors")
        compressors = pytest.importorskip(
            "compressed_tensors.compressors", reason=f"{OPTIONAL} compressed-tensors"
        )
        from compressed_tensors.quantization import QuantizationConfig
    model = deployed(recipe)
    file, files = written("safetensors", model, tmp_path)
    state = torch_files.load_file(file)
    config = QuantizationConfig(**files.settings["quantization_config"])
    (group,) = config.config_groups.values()
    decoder = compressors.BaseCompressor.get_value_from_registry(group.format)
    read = {name: decoder.decompress(own(state, name), group)["weight"] for name in group.targets}
    assert (group.format, len(read)) == (format_, modules)
    assert {one.dtype for one in read.values()} == {torch.float32}
    assert all(same_bits(values, model.tensors[name].values) for name, values in read.items())


def own(state, module):
    """The tensors of a module by their own names."""
    return {
        name.removeprefix(f"{module}."): tensor
        for name, tensor in state.items()
        if name.startswith(f"{module}.")
    }


def test_safetensors_reads_names_types_and_unquantized_tensors(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy", reason=f"{OPTIONAL} safetensors")
    model = deployed("format int8:channel")
    file, files = written("safetensors", model, tmp_path)
    state = numpy_files.load_file(file)
    assert state["head.weight_packed"].dtype == np.int32
    assert state["head.weight_shape"].tolist() == list(model.tensors["head"].values.shape)
    norm = next(name for name, one in model.tensors.items() if one.values.ndim == 1)
    assert same_bits(state[norm], model.tensors[norm].values)
    counted = {name: files.bytes_by_purpose[name] for name in ("codes", "scales", "unquantized")}
    assert sum(counted.values()) == sum(array.nbytes for array in state.values())


def test_the_packed_layout_is_that_of_its_description():
    model = deployed("format int4:group=32")
    content = target_of("safetensors").write(model).content
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    start, end = header["head.weight_packed"]["data_offsets"]
    words = np.frombuffer(content[8 + length :][start:end], "<u4")
    codes = (words[:, None] >> (4 * np.arange(8, dtype=np.uint32))) & 15  # eight in a word
    numbers = model.tensors["head"].stored.numbers
    assert np.array_equal(codes.ravel().astype(np.int64) - 8, numbers.ravel())


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        ("format int8:channel", "Q8_0"),
        ("format int8:group=32,full-range", "Q8_0"),
        ("format int4:group=32", "Q4_0"),
        ("gptq int4:group=96,full-range", "Q4_0"),
        ("format int4:block=32x96,tail=short", "Q4_0"),
        ("format bf16", "BF16"),
    ],
)
def test_gguf_reads_the_weights_bit_for_bit(recipe, kind, tmp_path):
    gguf = pytest.importorskip("gguf", reason=f"{OPTIONAL} gguf")
    model = deployed(recipe)
    file, files = written("gguf", model, tmp_path)
    tensors = {one.name: one for one in gguf.GGUFReader(file).tensors}
    read = {name: gguf.dequantize(one.data, one.tensor_type) for name, one in tensors.items()}
    assert {one.tensor_type.name for one in tensors.values()} == {kind, "F32"}
    assert read.keys() == model.tensors.keys()
    assert all(same_bits(read[name], one.values) for name, one in model.tensors.items())
    counted = {name: files.bytes_by_purpose[name] for name in ("codes", "scales", "unquantized")}
    assert sum(counted.values()) == sum(int(one.n_bytes) for one in tensors.values())


def test_gguf_reads_zero_points_within_the_stated_difference(tmp_path):
    gguf = pytest.importorskip("gguf", reason=f"{OPTIONAL} gguf")
    model = deployed("format int4:group=32,asym")
    file, files = written("gguf", model, tmp_path)
    off = [
        np.abs(gguf.dequantize(one.data, one.tensor_type) - model.tensors[one.name].values).max()
        for one in gguf.GGUFReader(file).tensors
    ]
    assert 0 < max(off) < 2**-9
    assert files.notes[1].endswith(f"weights differ by at most {max(off):.2g}")


ONNX = (
    *("format int8:channel", "format int8", "format int4:channel", "format int8:channel,asym"),
    *("format int4:group=16,tail=short", "format int4:group=9,asym,tail=short"),
    *("format fp8_e4m3:channel", "format fp8_e4m3", "format fp16", "format bf16"),
)


@pytest.mark.parametrize("recipe", ONNX)
def test_onnxruntime_has_the_weights_bit_for_bit_and_the_measured_outputs(recipe):
    runtime = pytest.importorskip("dse_evaluators.workloads.onnx_runtime")
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    model = deployed(recipe, CNN)
    content = target_of("onnx").write(model).content
    images = workload_of(CNN).judging["search"].images.astype(np.float32)
    layers = [name for name in model.tensors if name.endswith("weight")]
    read = runtime.Session(runtime.with_outputs(content, layers)).run(images[:1])
    logits = runtime.Session(content).run(images)[0]
    recipes = evaluator(recipe, CNN).recipes({})
    measured = recipe_runner.outputs(CNN, recipes, "search", Signals())
    assert all(same_bits(w, model.tensors[n].values) for n, w in zip(layers, read, strict=True))
    assert np.abs(logits - measured).max() < 1e-4  # logits up to 25: 2e-6 of float32 sums
    assert np.array_equal(logits.argmax(axis=1), measured.argmax(axis=1))


def test_onnx_without_a_graph_is_refused_with_targets_that_need_none():
    with pytest.raises(StudyError, match="gives no ONNX graph") as caught:
        target_of("onnx").write(deployed("format int8:channel"))
    assert "--to safetensors" in caught.value.hint


@pytest.mark.parametrize("text", ["int4:group=32", "int8:channel", "int3:channel,asym"])
def test_torchao_quantizes_the_original_weights_to_those_of_the_study(text, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization = pytest.importorskip("torchao.quantization")
        from torchao.core.config import config_from_dict
    model = deployed(f"format {text},full-range,scale=fp32")
    file, _ = written("torchao", model, tmp_path)
    names = [name for name, one in model.tensors.items() if one.values.ndim == 2]
    network = linear_layers({name: workload_of(LM).parameters[name] for name in names})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = config_from_dict(json.loads(file.read_text()))
        quantization.quantize_(network, config, filter_fn=None)
    read = {name: network.get_submodule(name).weight.dequantize() for name in names}
    assert all(same_bits(read[name], model.tensors[name].values) for name in names)


def linear_layers(matrices):
    """A module with a linear layer for each matrix, under its dotted name."""
    network = torch.nn.Module()
    for name, matrix in matrices.items():
        *path, last = name.split(".")
        place = network
        for word in path:
            if not hasattr(place, word):
                place.add_module(word, torch.nn.Module())
            place = getattr(place, word)
        layer = torch.nn.Linear(matrix.shape[1], matrix.shape[0], bias=False)
        layer.weight = torch.nn.Parameter(torch.tensor(matrix), requires_grad=False)
        place.add_module(last, layer)
    return network


@pytest.mark.parametrize(
    ("target", "recipe", "nearest"),
    [
        ("safetensors", "format int3:channel", "int4:channel"),
        ("safetensors", "format int4:group=64,tail=short", "int4:channel, or a group that divides"),
        ("safetensors", "prune 0.5 > format int8:channel", "int4 or int8 or fp8_e4m3"),
        ("safetensors", "format mxfp4", "int4 or int8 or fp8_e4m3"),
        ("gguf", "format int8:group=32,asym", "int8:group=32 without asym"),
        ("gguf", "format int4:group=48", "int4:group=32"),
        ("gguf", "format int8:channel,scale=fp32", "int8:channel,scale=fp16"),
        ("gguf", "format fp8_e4m3:channel", "int8:channel"),
        ("torchao", "format int4:group=32", "int4:group=32,full-range,scale=fp32"),
        ("torchao", "gptq int4:channel,full-range,scale=fp32", "int4:channel,full-range"),
        ("torchao", "format fp16", "'keep'"),
    ],
)
def test_a_refusal_names_the_nearest_format(target, recipe, nearest):
    with pytest.raises(StudyError, match=f"--to {target} cannot hold '") as caught:
        target_of(target).write(deployed(recipe))
    assert f"the nearest that it can hold: {nearest}" in caught.value.hint


def test_filters_of_a_convolution_are_refused_where_only_matrices_fit():
    with pytest.raises(StudyError, match=r"cannot hold 'conv1\.weight'"):
        target_of("safetensors").write(deployed("format int8:channel", CNN))
