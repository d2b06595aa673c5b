"""A user's own models: what is deployed gives the outputs of the study in the real consumer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse import Study
from dse.errors import EvaluationError
from dse.interop.deployment.targets import target_of
from dse_evaluators.compression import recipe_runner
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import (
    MLP,
    image_network,
    images,
    vision_transformer,
    write_images,
    write_llama,
    write_onnx,
    write_study,
    write_table,
    write_tokens,
)

INT8 = "format int8:channel"


def made(tmp_path, kind):
    """Return the evaluator of one of the four models of a newcomer, in a study's options."""
    if kind == "cnn":
        write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
        return ByRecipe(model=f"{tmp_path}/net.onnx", data=images(), recipe=INT8)
    if kind == "vit":
        kept = {"patches.weight": "keep"}  # no convolution filters in safetensors
        return ByRecipe(model=vision_transformer(), data=images(), recipe=INT8, layers=kept)
    if kind == "llama":
        write_tokens(tmp_path / "text.npz")
        model = str(write_llama(tmp_path / "llama"))
        return ByRecipe(model=model, data=f"{tmp_path}/text.npz", recipe=INT8)
    (tmp_path / "net.py").write_text(MLP)
    write_table(tmp_path / "people.csv")
    model = {"python": f"{tmp_path}/net.py:make"}
    return ByRecipe(model=model, data=f"{tmp_path}/people.csv", recipe=INT8)


def measured(evaluator):
    """Return the outputs on the test split, with which the study's metrics are computed."""
    return recipe_runner.outputs(evaluator._model, evaluator.recipes({}), "test", Signals())


def inputs_of(evaluator):
    return workload_of(evaluator._model)._task.data.inputs_of("test")


def run_module(evaluator, state):
    """Return the outputs of the user's module, in PyTorch, with the tensors of a state dict."""
    module = workload_of(evaluator._model)._module
    own = dict(module.named_parameters())  # a matrix that is no module's weight is stored as one
    state = {n if n in own else n.removesuffix(".weight"): one for n, one in state.items()}
    missing, unexpected = module.load_state_dict(state, strict=False)
    buffers = {name for name, _ in module.named_buffers()}
    assert (set(missing) <= buffers, unexpected) == (True, [])
    with torch.inference_mode():
        found = module(torch.tensor(inputs_of(evaluator))).numpy()
    if found.ndim > 2:  # the last token of an example has no target
        found = found[:, :-1]
    return found.reshape(-1, found.shape[-1])


def decoded(state):
    """Return the weights of the packed layout: four numbers of 8 bits in each int32."""
    found = {}
    for name, array in state.items():
        base, _, part = name.rpartition("_")
        if part == "packed":
            rows, columns = state[f"{base}_shape"]
            codes = array.view(np.uint8).reshape(rows, -1)[:, :columns].astype(np.float32) - 128
            found[base] = codes * state[f"{base}_scale"]
        elif part not in ("scale", "shape"):
            found[name] = array
    return {name: torch.tensor(np.asarray(one, np.float32)) for name, one in found.items()}


@pytest.mark.parametrize("kind", ["vit", "llama", "mlp"])
def test_a_state_dict_gives_the_measured_outputs_in_the_users_module(kind, tmp_path):
    evaluator = made(tmp_path, kind)
    wanted = measured(evaluator)
    file = tmp_path / "model.pt"
    file.write_bytes(target_of("torch").write(evaluator.deployed_model({})).content)
    state = torch.load(file, weights_only=True)
    found = run_module(evaluator, {name: one.float() for name, one in state.items()})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["vit", "llama", "mlp"])
def test_safetensors_give_the_measured_outputs_in_the_users_module(kind, tmp_path):
    reader = pytest.importorskip("safetensors.numpy")
    evaluator = made(tmp_path, kind)
    wanted = measured(evaluator)
    state = reader.load(target_of("safetensors").write(evaluator.deployed_model({})).content)
    assert any(name.endswith("_packed") for name in state)
    found = run_module(evaluator, decoded(state))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("recipe", [INT8, "format int4:channel", "format fp16"])
def test_an_onnx_file_of_the_user_is_deployed_as_one_with_the_measured_outputs(recipe, tmp_path):
    runtime = pytest.importorskip("dse_evaluators.workloads.onnx_runtime")
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    evaluator = ByRecipe(model=f"{tmp_path}/net.onnx", data=images(), recipe=recipe)
    content = target_of("onnx").write(evaluator.deployed_model({})).content
    found = runtime.Session(content).run(inputs_of(evaluator))[0]
    np.testing.assert_allclose(found, measured(evaluator), rtol=1e-5, atol=1e-5)


def test_weights_that_a_file_stores_as_inputs_by_outputs_are_deployed_in_its_graph(tmp_path):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("dse_evaluators.workloads.onnx_runtime")
    weight = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    tensors = [onnx.helper.make_tensor_value_info("x", 1, ["n", 6])]
    outputs = [onnx.helper.make_tensor_value_info("y", 1, ["n", 3])]
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    stored = [onnx.numpy_helper.from_array(weight, "w")]
    graph = onnx.helper.make_graph([node], "product", tensors, outputs, stored)
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    (tmp_path / "product.onnx").write_bytes(model.SerializeToString())
    inputs = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
    options = {"model": f"{tmp_path}/product.onnx", "data": (inputs, np.arange(40) % 3)}
    evaluator = ByRecipe(**options, recipe="format int4:channel")
    content = target_of("onnx").write(evaluator.deployed_model({})).content
    found = runtime.Session(content).run(inputs_of(evaluator))[0]
    np.testing.assert_allclose(found, measured(evaluator), rtol=1e-6, atol=1e-6)
    plain = runtime.Session((tmp_path / "product.onnx").read_bytes()).run(inputs_of(evaluator))[0]
    assert np.abs(found - plain).max() > 1e-3


def test_a_study_of_a_users_file_ends_in_files(tmp_path):
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    write_images(tmp_path / "data.npz")
    file = write_study(tmp_path, "model: net.onnx, data: data.npz, quality: accuracy")
    study = Study.open(file, storage="memory://")
    study.run()
    for to, name in (("onnx", "out.onnx"), ("torch", "out.pt")):
        made_files = study.deploy(to, tmp_path / name, trial=0)
        assert made_files.files[0].stat().st_size == made_files.sizes[-1].file_bytes


class Branches(torch.nn.Module):
    """Module with two inputs, two biases of equal values, and a parameter that it does not use."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
        self.spare = torch.nn.Linear(4, 2)
        for layer in (self.left, self.right):
            torch.nn.init.zeros_(layer.bias)

    def forward(self, a, b):
        return self.left(a) * self.right(b).tanh()


def test_the_graph_of_a_module_has_all_its_parameters_by_name_and_its_inputs():
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("dse_evaluators.workloads.onnx_runtime")
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(30, 4)).astype(np.float32) for name in ("a", "b")}
    evaluator = ByRecipe(model=Branches(), data={"inputs": inputs}, recipe=INT8)
    model = evaluator.deployed_model({})
    graph = onnx.load_model_from_string(model.onnx()).graph
    assert {one.name for one in graph.initializer} == set(model.tensors) == set(STORED)
    content = target_of("onnx").write(model).content
    feeds = workload_of(evaluator._model)._task.data.feeds_of("test")
    found = runtime.Session(content).run_named(feeds)[0]
    np.testing.assert_allclose(found, measured(evaluator), rtol=1e-5, atol=1e-5)


STORED = [f"{name}.{part}" for name in ("left", "right", "spare") for part in ("weight", "bias")]


class Choosing(torch.nn.Module):
    """Module whose operations depend on the values of its inputs, which no trace holds."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        signal = self.layer(x)
        return signal if len(x) < 2 and float(x.sum()) < -1e6 else signal * float(x.sum())


def test_a_module_whose_trace_gives_other_outputs_is_refused():
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    inputs = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    evaluator = ByRecipe(model=Choosing(), data=inputs, recipe=INT8)
    with pytest.raises(EvaluationError, match="has outputs that differ by up to") as caught:
        target_of("onnx").write(evaluator.deployed_model({}))
    assert "images.shape[0], not len(images)" in caught.value.hint


@pytest.mark.parametrize(("kind", "notes"), [("llama", 1), ("mlp", 0), ("cnn", 0)])
def test_a_product_that_onnxruntime_computes_in_eight_bits_is_noted(kind, notes, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    found = target_of("onnx").write(made(tmp_path, kind).deployed_model({})).notes
    assert [("accuracy_level is 1" in note) for note in found] == [True] * notes
