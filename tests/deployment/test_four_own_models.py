"""Four models made with PyTorch alone: a study of each, and its winner in two real consumers.

The quality of a study is the cosine between the outputs of the compressed and of the original
model. It is computed here again from the outputs of the consumer and of the user's own module.
"""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from dse import Study
from dse_evaluators.compression import recipe_runner
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import (
    LLAMA,
    MLP,
    image_network,
    images,
    vision_transformer,
    write_onnx,
    write_safetensors,
)

MOST_LINES = 12
SPACE = """\
space: formats
parameters:
  bits: {choice: ["int8:channel", "int4:channel", "int2:channel"]}
"""
CNN = """\
study: cnn
space: space.yaml
evaluators:
  q: {use: compression.recipe, model: net.onnx, data: images.npz, recipe: "format {bits}"}
objectives: [{minimize: q.size}]
constraints: [q.cosine >= 0.99]
optimizer: exhaustive
executor: serial
"""
LM = CNN.replace("study: cnn", "study: lm").replace("net.onnx, data: images", "./llama, data: text")
VIT = """\
from dse import Space, Study
recipe = {"use": "compression.recipe", "model": net, "data": "images.npz", "recipe": "format {bits}"}
space = Space({"bits": ["int8:channel", "int4:channel", "int2:channel"]})
study = Study("vit", space, evaluators={"q": recipe}, minimize="q.size",
              constraints=["q.cosine >= 0.99"], optimizer="exhaustive", storage="memory://")
study.run()
"""
TABLE = """\
from dse import Space, Study
recipe = {"use": "compression.recipe", "recipe": "format {bits},full-range,scale=fp32",
          "model": {"python": "net.py:make"}, "data": {"file": "people.csv", "split": "part"}}
space = Space({"bits": ["int8:channel", "int4:channel", "int2:channel"]})
study = Study("table", space, evaluators={"q": recipe}, minimize="q.size",
              constraints=["q.cosine >= 0.99"], optimizer="exhaustive", storage="memory://")
study.run()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("lines", [SPACE + CNN, SPACE + LM, VIT, TABLE])
def test_a_study_of_an_own_model_has_at_most_twelve_lines(lines):
    assert len(lines.strip().splitlines()) <= MOST_LINES


def test_the_winner_of_a_cnn_runs_in_onnxruntime_and_in_pytorch(here):
    inputs, net = write_examples(), image_network()
    write_onnx(here / "net.onnx", net, torch.zeros(1, 1, 8, 8))
    study = run_yaml(here, CNN)
    wanted = measured_outputs(study)
    study.deploy("onnx", "winner.onnx")
    check(study, run_onnx("winner.onnx", inputs), run_module(net, inputs), wanted)
    study.deploy("torch", "winner.pt")
    whole, folded = run_module(net, inputs), fold_normalization(net)
    check(study, run_module(load_state(folded), inputs), whole, wanted)


def test_the_winner_of_a_vision_transformer_runs_in_onnxruntime_and_in_pytorch(here):
    inputs, net = write_examples(), vision_transformer().eval()
    study = run_python(VIT, net=net)
    wanted = measured_outputs(study)
    study.deploy("onnx", "winner.onnx")
    one_by_one = np.concatenate([run_onnx("winner.onnx", one[None]) for one in inputs])
    check(study, one_by_one, run_module(net, inputs), wanted)
    study.deploy("torch", "winner.pt")
    whole = run_module(net, inputs)
    check(study, run_module(load_state(net), inputs), whole, wanted)


def test_the_winner_of_a_table_runs_in_torchao_and_in_onnxruntime(here):
    inputs = write_people()
    (here / "net.py").write_text(MLP)
    study = run_python(TABLE)
    net = made_net()
    whole, wanted = run_module(net, inputs), measured_outputs(study)
    study.deploy("onnx", "winner.onnx")
    check(study, run_onnx("winner.onnx", inputs), whole, wanted)
    study.deploy("torchao", "winner.json")
    check(study, run_module(quantize_with_torchao(net, "winner.json"), inputs), whole, wanted)


def test_the_winner_of_a_decoder_runs_in_transformers_from_safetensors_and_from_gguf(here):
    tokens = write_decoder(here / "llama")
    study = run_yaml(here, LM)
    whole, wanted = run_llama(here / "llama", {}, tokens), measured_outputs(study)
    study.deploy("safetensors", "model.safetensors")
    check(study, run_llama(here / "llama", read_packed(here), tokens), whole, wanted)
    study.deploy("gguf", "winner.gguf")
    check(study, run_llama(here / "llama", read_gguf("winner.gguf"), tokens), whole, wanted)


def run_yaml(folder, text):
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(text)
    study = Study.open(folder / "study.yaml", storage="memory://")
    study.run()
    return study


def run_python(text, **names):
    exec(compile(text, "study.py", "exec"), names)
    return names["study"]


def measured_outputs(study):
    """Return the outputs with which the winner's metrics were computed."""
    (winner,) = study.front
    (bound,) = study.engine.plan.pipeline.bound
    evaluator = bound.evaluator
    recipes = evaluator.recipes(winner.design)
    return recipe_runner.outputs(evaluator._model, recipes, "search", Signals())


def check(study, found, whole, measured):
    """The consumer's outputs are those of the study, and give its metric."""
    (winner,) = study.front
    limit = 1e-5 * max(1.0, np.abs(measured).max())
    np.testing.assert_allclose(found, measured, rtol=1e-5, atol=limit)
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(whole, axis=1)
    cosine = ((found * whole).sum(axis=1) / lengths).mean()
    assert winner.metrics["q.cosine"] == pytest.approx(cosine, abs=2e-6)
    assert winner.metrics["q.cosine"] < 1 - 2e-6  # the weights are not the original ones


def write_examples():
    """Write images with named splits; return those of the split that a study measures on."""
    inputs, _ = images()
    parts = np.array(["calibration", "search", "test"])[np.arange(len(inputs)) % 3]
    np.savez("images.npz", inputs=inputs, split=parts)
    return inputs[parts == "search"]


def write_people():
    rows = np.random.default_rng(0).normal(size=(60, 3)).round(4)
    parts = np.array(["calibration", "search", "test"])[np.arange(60) % 3]
    lines = [
        f"{','.join(map(str, row))},{place % 2},{parts[place]}" for place, row in enumerate(rows)
    ]
    Path("people.csv").write_text("\n".join(["age,height,weight,label,part", *lines]) + "\n")
    return rows[parts == "search"].astype(np.float32)


def made_net():
    """Return the network of the user's file, as it is made there with the seed 0."""
    names = {}
    exec(MLP, names)
    torch.manual_seed(0)
    return names["make"]().eval()


def write_decoder(folder):
    """Write a decoder with grouped queries and rows of a multiple of 32, and its examples."""
    config = {**LLAMA, "hidden_size": 32, "intermediate_size": 64, "architectures": [ARCHITECTURE]}
    rng = np.random.default_rng(0)
    block = "model.layers.0."
    sides = {
        "model.embed_tokens.weight": (32, 32),
        f"{block}self_attn.q_proj.weight": (32, 32),
        f"{block}self_attn.k_proj.weight": (16, 32),
        f"{block}self_attn.v_proj.weight": (16, 32),
        f"{block}self_attn.o_proj.weight": (32, 32),
        f"{block}mlp.gate_proj.weight": (64, 32),
        f"{block}mlp.up_proj.weight": (64, 32),
        f"{block}mlp.down_proj.weight": (32, 64),
        "lm_head.weight": (32, 32),
    }
    norms = ("model.norm", f"{block}input_layernorm", f"{block}post_attention_layernorm")
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    weights = {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in sides.items()}
    ones = {f"{name}.weight": np.ones(32, np.float32) for name in norms}
    write_safetensors(folder / "model.safetensors", {**weights, **ones})
    tokens = rng.integers(0, 32, (24, 12))
    parts = np.array(["calibration", "search", "test"])[np.arange(24) % 3]
    np.savez("text.npz", tokens=tokens, split=parts)
    return tokens[parts == "search"]


ARCHITECTURE = "LlamaForCausalLM"


def run_module(net, inputs):
    with torch.inference_mode():
        return net(torch.tensor(inputs)).numpy()


def load_state(net):
    """Return the module with the tensors of the deployed state dict."""
    state = torch.load("winner.pt", weights_only=True)
    folded = sorted(name for name in state if name.startswith("onnx::"))  # filters, then bias
    renamed = dict(zip(folded, ("0.weight", "0.bias"), strict=False))
    net.load_state_dict({renamed.get(name, name): one for name, one in state.items()})
    return net


def fold_normalization(net):
    """Return the network as PyTorch exports it: batch normalization is part of a convolution."""
    layers = list(copy.deepcopy(net))
    layers[:2] = [torch.nn.utils.fusion.fuse_conv_bn_eval(*layers[:2]), torch.nn.Identity()]
    return torch.nn.Sequential(*layers)


def run_onnx(file, inputs):
    """Return the outputs of onnxruntime with products in single precision."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: inputs})[0]


def quantize_with_torchao(net, file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization = pytest.importorskip("torchao.quantization")
        from torchao.core.config import config_from_dict

        config = config_from_dict(json.loads(Path(file).read_text()))
        quantization.quantize_(net, config, filter_fn=None)
    return net


def read_packed(folder):
    """Return the weights that the library compressed-tensors decompresses, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = pytest.importorskip("safetensors.torch")
        compressors = pytest.importorskip("compressed_tensors.compressors")
        from compressed_tensors.quantization import QuantizationConfig
    state = files.load_file(folder / "model.safetensors")
    settings = json.loads((folder / "config.json").read_text())["quantization_config"]
    (group,) = QuantizationConfig(**settings).config_groups.values()
    decoder = compressors.BaseCompressor.get_value_from_registry(group.format)
    read = {}
    for name in group.targets:
        parts = {
            key[len(name) + 1 :]: one for key, one in state.items() if key.startswith(f"{name}.")
        }
        read[f"{name}.weight"] = decoder.decompress(parts, group)["weight"]
    packed = ("_packed", "_scale", "_shape", "_zero_point")
    return {**{key: one for key, one in state.items() if not key.endswith(packed)}, **read}


def read_gguf(file):
    gguf = pytest.importorskip("gguf")
    return {
        one.name: torch.tensor(gguf.dequantize(one.data, one.tensor_type))
        for one in gguf.GGUFReader(file).tensors
    }


def run_llama(folder, state, tokens):
    """Return the logits of transformers' model, with the tensors of a state dict where given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers")
        model = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    assert not state or model.load_state_dict(state, strict=False).unexpected_keys == []
    assert not state or set(state) == set(model.state_dict())
    with torch.inference_mode():
        logits = model(torch.tensor(tokens)).logits[:, :-1].numpy()
    return logits.reshape(-1, logits.shape[-1])
