"""Damaged or unfit models and data of users: one clear error each, and nothing is run."""

from __future__ import annotations

import json
import pickle
import re
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from dse.errors import DseError, EvaluationError, SpecErrors
from dse.schema.study.plan import plan_of
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_function import OwnFunction
from tests.evaluators.compression.own_models import (
    MLP,
    image_network,
    images,
    llama_weights,
    write_images,
    write_llama,
    write_onnx,
    write_safetensors,
    write_study,
    write_table,
)


@pytest.fixture(scope="module")
def network(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    write_onnx(path, image_network(), torch.zeros(1, 1, 8, 8))
    return path.read_bytes()


def _message(model: object, data: object = None, quality: object = None) -> str:
    """Return the one error of a model that is refused, with its hint."""
    with pytest.raises(DseError) as found:
        model_ref(model, data, quality)
    assert found.value.hint or len(found.value.problem) > 20
    return str(found.value)


def _edited(network: bytes, change) -> bytes:
    model = onnx.load_model_from_string(network)
    change(model)
    return model.SerializeToString()


def _double(model):
    tensor = next(one for one in model.graph.initializer if len(one.dims) == 4)
    array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))


def _unknown_operator(model):
    model.graph.node[0].op_type = "Convolve"


def _unknown_domain(model):
    model.graph.node[0].domain = "com.example"


def _no_input(model):
    del model.graph.input[:]


def _cut_weights(model):
    tensor = next(one for one in model.graph.initializer if len(one.dims) == 4)
    tensor.raw_data = tensor.raw_data[:-4]


def _dangling(model):
    model.graph.node[1].input[0] = "nowhere"


def _no_layers(model):
    del model.graph.node[:]
    del model.graph.initializer[:]
    relu = onnx.helper.make_node("Relu", [model.graph.input[0].name], [model.graph.output[0].name])
    model.graph.node.append(relu)


def _outside(model):
    tensor = next(one for one in model.graph.initializer if len(one.dims) == 4)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret.bin")


def _missing_weights(model):
    _outside(model)
    tensor = next(one for one in model.graph.initializer if one.external_data)
    tensor.external_data[0].value = "weights.bin"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_double, "DOUBLE|not a complete"),
        (_unknown_operator, "not a complete ONNX model.*Convolve"),
        (_unknown_domain, "com.example"),
        (_no_input, "has no input|not a complete"),
        (_cut_weights, "not a complete"),
        (_dangling, "not a complete"),
        (_no_layers, "no layer that can be compressed"),
        (_outside, "outside its folder"),
        (_missing_weights, "there is no file .*weights.bin"),
    ],
)
def test_unfit_onnx_file_is_refused(network, tmp_path, change, words):
    (tmp_path / "net.onnx").write_bytes(_edited(network, change))
    assert _matches(words, _message(str(tmp_path / "net.onnx")))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_truncated_onnx_file_is_refused(network, tmp_path, share):
    (tmp_path / "net.onnx").write_bytes(network[: int(len(network) * share)])
    assert _matches("ONNX model|one input", _message(str(tmp_path / "net.onnx")))


def test_text_is_not_an_onnx_file(tmp_path):
    (tmp_path / "net.onnx").write_text("<html>not found</html>")
    assert "not an ONNX model" in _message(str(tmp_path / "net.onnx"))


@pytest.mark.parametrize("ending", [".pt", ".pth", ".pkl", ".bin", ".ckpt"])
def test_pickled_model_is_never_opened(tmp_path, ending):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    (tmp_path / f"net{ending}").write_bytes(pickle.dumps(Bomb()))
    assert "is a pickle" in _message(str(tmp_path / f"net{ending}"))
    assert not (tmp_path / "ran").exists()


def _exported_with_pickled_weight(folder: Path) -> Path:
    """Write a torch.export archive whose first weight is a pickle that touches the file ran."""
    exported = torch.export.export(nn.Linear(3, 2), (torch.zeros(1, 3),))
    torch.export.save(exported, folder / "plain.pt2")

    class Bomb:
        def __reduce__(self):
            return Path.touch, (folder / "ran",)

    torch.save(Bomb(), folder / "bomb.pt")
    config = "data/weights/model_weights_config.json"
    with (
        zipfile.ZipFile(folder / "plain.pt2") as plain,
        zipfile.ZipFile(folder / "net.pt2", "w") as bad,
    ):
        for name in plain.namelist():
            content = plain.read(name)
            if name.endswith(config):
                content = content.replace(b'"use_pickle": false', b'"use_pickle": true')
            elif name.endswith("weight_0"):
                content = (folder / "bomb.pt").read_bytes()
            bad.writestr(name.replace("plain/", "net/"), content)
    return folder / "net.pt2"


def test_pickle_in_an_exported_archive_is_never_opened(tmp_path):
    path = _exported_with_pickled_weight(tmp_path)
    message = _message(str(path))
    assert "is a pickle, which could run code, and is never read" in message
    assert "export plain tensors" in message
    assert not (tmp_path / "ran").exists()


def test_loading_an_exported_archive_runs_its_pickles(tmp_path):
    path = _exported_with_pickled_weight(tmp_path)
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        torch.export.load(path)
    assert (tmp_path / "ran").exists()  # therefore, archives have a reader of ours


@pytest.mark.parametrize(
    "text", ["raise SystemExit('3')\ndef make(): ...", "import sys\ndef make(): sys.exit('3')"]
)
def test_program_that_exits_is_an_error_of_the_model(tmp_path, text):
    (tmp_path / "net.py").write_text(text)
    function = OwnFunction.of(f"{tmp_path / 'net.py'}:make")
    with pytest.raises(EvaluationError, match="SystemExit: 3"):
        function.call()


def _config(**changes):
    return lambda folder: (folder / "config.json").write_text(
        json.dumps({**json.loads((folder / "config.json").read_text()), **changes})
    )


def _no_config(folder):
    (folder / "config.json").unlink()


def _broken_config(folder):
    (folder / "config.json").write_text("{")


def _no_weights(folder):
    (folder / "model.safetensors").unlink()


def _pickle_inside(folder):
    (folder / "model.safetensors").write_bytes(pickle.dumps({"a": 1}))


def _truncated(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-100])


def _weights(change):
    def edit(folder):
        arrays = llama_weights()
        change(arrays)
        write_safetensors(folder / "model.safetensors", arrays)

    return edit


def _missing_shard(folder):
    names = dict.fromkeys(llama_weights(), "model-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def _shard_elsewhere(folder):
    names = dict.fromkeys(llama_weights(), "../model.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def _empty_index(folder):
    (folder / "model.safetensors.index.json").write_text("{}")


def _lose_norm(arrays):
    del arrays["model.norm.weight"]


def _add_tensor(arrays):
    arrays["model.extra"] = np.zeros(3, dtype=np.float32)


def _widen(arrays):
    arrays["lm_head.weight"] = arrays["lm_head.weight"].astype(np.float64)


def _reshape(arrays):
    arrays["lm_head.weight"] = arrays["lm_head.weight"].T.copy()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_no_config, "there is no file .*config.json"),
        (_broken_config, "is not JSON"),
        (_config(model_type="lama"), "did you mean 'llama'"),
        (_config(model_type="t5"), "cannot be read"),
        (_config(hidden_size="16"), "hidden_size is '16'"),
        (_config(num_key_value_heads=3), "do not share"),
        (_config(hidden_size=32), "has the shape"),
        (_config(num_hidden_layers=2), "the weights lack model.layers.1"),
        (_config(rope_scaling={"rope_type": "dynamic"}), "'dynamic' is not supported.*llama3"),
        (_config(rope_scaling={"rope_type": "llama3"}), "factor is None"),
        (_config(hidden_act="mish"), "hidden_act 'mish' is not supported"),
        (_config(num_hidden_layers=10**6), "the weights have 12 tensors"),
        (_no_weights, "there is no file .*model.safetensors"),
        (_pickle_inside, "not a complete safetensors file"),
        (_truncated, "lies outside the file"),
        (_missing_shard, "there is no file .*00002"),
        (_shard_elsewhere, "no shard of this folder"),
        (_empty_index, "no weight_map"),
        (_weights(_lose_norm), "lack model.norm.weight"),
        (_weights(_add_tensor), "no parameter model.extra"),
        (_weights(_widen), "of type F64"),
        (_weights(_reshape), r"has the shape \(16, 32\)"),
    ],
)
def test_unfit_safetensors_folder_is_refused(tmp_path, change, words):
    folder = write_llama(tmp_path / "llama")
    change(folder)
    assert _matches(words, _message(str(folder)))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"inputs": np.zeros((10, 3)), "targets": np.zeros(9, dtype=int)}, "10 inputs and 9"),
        ({"inputs": np.array([None, 1])}, "Python objects"),
        ({"features_": np.zeros((10, 3))}, "has no array"),
        ({"inputs": np.arange(30.0).reshape(10, 3)}, "accuracy needs targets"),
        ({"inputs": np.arange(30).reshape(10, 3), "targets": np.zeros(10)}, "needs classes"),
        ({"inputs": np.full((10, 3), np.nan), "targets": np.zeros(10, int)}, "NaN in row 1"),
        ({"inputs": np.array([["a"]] * 10), "targets": np.zeros(10, int)}, "not numbers"),
        ({"inputs": np.zeros((10, 3)), "targets": np.zeros(10, int)}, "has no example"),
        ({"inputs": np.zeros((0, 3)), "targets": np.zeros(0, int)}, "the shape"),
    ],
)
def test_unfit_arrays_are_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "data.npz", **arrays)
    data = str(tmp_path / "data.npz")
    assert _matches(words, _message(nn.Linear(3, 2), data, "accuracy"))


def test_pickle_under_the_name_of_an_archive_is_refused(tmp_path):
    (tmp_path / "data.npz").write_bytes(pickle.dumps([1, 2, 3]))
    message = _message(nn.Linear(3, 2), str(tmp_path / "data.npz"), "accuracy")
    assert "never unpickled" in message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target": "label"}, "did you mean 'targets'"),
        ({"targets": "lable"}, "did you mean 'label'"),
        ({"inputs": ["age", "hight"]}, "did you mean 'height'"),
        ({"test": 1.5}, "test is 1.5"),
        ({"test": 0.6, "calibration": 0.5}, "leave no examples"),
        ({"seed": "7"}, "seed is '7'"),
    ],
)
def test_unfit_settings_of_a_table_are_refused(tmp_path, settings, words):
    write_table(tmp_path / "people.csv")
    data = {"file": str(tmp_path / "people.csv"), **settings}
    assert _matches(words, _message(nn.Linear(3, 2), data, "accuracy"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def made(): ...", "did you mean 'made'"),
        ("def make(:", "net.py:1: not valid Python"),
        ("", "defines no 'make'"),
    ],
)
def test_unfit_function_is_refused_without_importing_it(tmp_path, text, words):
    (tmp_path / "net.py").write_text(text)
    assert _matches(words, _message({"python": f"{tmp_path / 'net.py'}:make"}))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("digits-cn", "did you mean 'digits-cnn'"),
        ("nothing.onnx", "there is no file"),
        ({"pyton": "net.py:make"}, "did you mean 'python'"),
        (3, "a model cannot be 3"),
        (nn.ReLU(), "no layer that can be compressed"),
        (nn.Linear(3, 2).double(), "float64"),
    ],
)
def test_unfit_model_is_refused(model, words):
    assert _matches(words, _message(model))


def test_unknown_quality_is_refused():
    message = _message(nn.Linear(3, 2), (np.zeros((9, 3)), np.zeros(9, int)), "acuracy")
    assert "did you mean 'accuracy'" in message


def test_data_of_a_built_in_model_is_refused():
    with pytest.raises(DseError, match="has its own data"):
        model_ref("digits-cnn", "data.npz")


def test_model_without_data_is_refused():
    with pytest.raises(DseError, match="needs data to run on"):
        ByRecipe(model=nn.Linear(3, 2), quality="accuracy")


def test_inputs_of_another_width_fail_with_the_users_shapes(network, tmp_path):
    (tmp_path / "net.onnx").write_bytes(network)
    data = (np.random.default_rng(0).normal(size=(30, 1, 9)), np.zeros(30, dtype=int))
    made = model_ref(str(tmp_path / "net.onnx"), data, "accuracy").make()
    with pytest.raises(EvaluationError, match=r"inputs of shape \(1, 9\) an example"):
        made.calibration()


def test_more_classes_than_outputs_fail_with_both_numbers():
    inputs = np.random.default_rng(0).normal(size=(30, 3))
    made = model_ref(nn.Linear(3, 2), (inputs, np.arange(30) % 5), "accuracy").make()
    with pytest.raises(EvaluationError, match="a target is 4, but the model has 2 outputs"):
        made._task.outputs(np.zeros((15, 2), dtype=np.float32), "search")


@pytest.mark.parametrize(
    ("options", "line", "words"),
    [
        ("model: nett.onnx, data: data.npz", 4, "did you mean 'net.onnx'"),
        ("model: net.onnx, data: dat.npz", 4, "did you mean 'data.npz'"),
        ("model: net.onnx, data: data.npz, quality: acuracy", 4, "did you mean 'accuracy'"),
        ("model: net.onnx", 4, "needs data"),
        ('model: {python: "nt.py:make"}, data: data.npz', 4, "did you mean 'net.py'"),
    ],
)
def test_mistake_in_a_study_has_its_line(network, tmp_path, options, line, words):
    (tmp_path / "net.onnx").write_bytes(network)
    (tmp_path / "net.py").write_text(MLP)
    write_images(tmp_path / "data.npz")
    with pytest.raises(SpecErrors) as found:
        plan_of(write_study(tmp_path, options))
    text = str(found.value)
    assert len(found.value.errors) == 1
    assert f"study.yaml:{line}" in text
    assert words in text


def test_cache_of_an_onnx_file_cannot_be_rounded(network, tmp_path):
    (tmp_path / "net.onnx").write_bytes(network)
    options = {"model": str(tmp_path / "net.onnx"), "data": images(), "quality": "accuracy"}
    with pytest.raises(DseError, match=r"kv_cache of net\.onnx.*onnxruntime computes"):
        ByRecipe(**options, kv_cache="int8")


def _matches(words: str, message: str) -> bool:
    assert re.search(words, message.replace("\n", " ")), message
    return True
