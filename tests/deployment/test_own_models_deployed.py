"""A user's own models: what is deployed gives the outputs of the study in the real consumer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse import Study
from dse.errors import StudyError
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


def test_a_study_of_a_users_file_ends_in_a_file_and_a_module_needs_no_graph(tmp_path):
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    write_images(tmp_path / "data.npz")
    file = write_study(tmp_path, "model: net.onnx, data: data.npz, quality: accuracy")
    study = Study.open(file, storage="memory://")
    study.run()
    for to, name in (("onnx", "out.onnx"), ("torch", "out.pt")):
        made_files = study.deploy(to, tmp_path / name, trial=0)
        assert made_files.files[0].stat().st_size == made_files.sizes[-1].file_bytes
    module = ByRecipe(model=image_network(), data=images(), recipe=INT8)
    with pytest.raises(StudyError, match="gives no ONNX graph"):
        target_of("onnx").write(module.deployed_model({}))
