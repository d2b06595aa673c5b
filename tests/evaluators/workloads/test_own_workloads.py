"""Workloads of users: the layers of files, functions and modules, and errors with their mend."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from typer.testing import CliRunner

from dse import Space, Study
from dse.cli.app import app
from dse.core.batch import Batch
from dse.errors import DseError, EvaluationError, SpecError
from dse.registry import make
from dse_evaluators.workloads.catalogue import layers_of, table_of
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.own.own_workload import workload_of_option
from tests.evaluators.compression.own_models import (
    LLAMA,
    image_network,
    vision_transformer,
    write_llama,
    write_onnx,
)

onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")

ARRAY = [{"rows": 8, "cols": 8, "dataflow": flow} for flow in ("os", "ws", "is")]
SPACE = "space: arrays\nparameters:\n  rows: {ordinal: [4, 8]}\n  cols: {ordinal: [8, 16]}\n  dataflow: {choice: [os, ws]}\n"
STUDY = """\
study: mine
space: space.yaml
evaluators:
  chip: {use: accelerators.systolic, workload: WORKLOAD}
objectives: [{minimize: chip.cycles}]
optimizer: exhaustive
executor: serial
"""
NET = """\
import pathlib

from torch import nn

pathlib.Path(__file__).with_name("imported").touch()


def make():
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
"""


class Recurrent(nn.Module):
    """Two LSTM layers in both directions, and the head of the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(6, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, signal):
        return self.head(self.cells(signal)[0][:, -1])


class MixedTokens(nn.Module):
    """Embedded tokens, a learnt matrix on the left of a product, and a tied head."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.mix = nn.Parameter(torch.randn(6, 12))

    def forward(self, tokens):
        return self.mix @ self.words(tokens) @ self.words.weight.T


def digits_network() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1)]
    layers += [nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(256, 128), nn.Linear(128, 10)).eval()


def cycles(workload, **options):
    chip = make("evaluators", "accelerators.systolic", workload=workload, **options)
    return chip.evaluate(Batch.of(ARRAY)).columns["cycles"].tolist()


def write_chip_study(folder, workload):
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(STUDY.replace("WORKLOAD", workload))
    return str(folder / "study.yaml")


def test_a_cnn_with_depthwise_layers_has_the_products_counted_by_hand(tmp_path):
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    found = workload_of_option(str(tmp_path / "net.onnx"))
    by_hand = [64 * 8 * 9, 64 * 8 * 9, 16 * 8 * 16, 16 * 4]
    assert [layer.macs for layer in found.layers] == by_hand
    assert [layer.groups for layer in found.layers] == [1, 8, 1, 1]
    assert found.table.parameters == 8 * 9 + 8 + 8 * 9 + 8 + 8 * 16 + 16 + 16 * 4 + 4  # norm folded
    first, second = found.notes
    assert "net.onnx are those of one example: its open axis n counts as 1" in first
    assert second.endswith("are no layers: 2 Relu, 1 GlobalAveragePool")


def test_a_vision_transformer_has_the_products_counted_by_hand(tmp_path):
    write_onnx(tmp_path / "net.onnx", vision_transformer(), torch.zeros(1, 1, 8, 8))
    found = workload_of_option(str(tmp_path / "net.onnx")).layers
    patches, qkv, scores, mixed = 4 * 16 * 16, 5 * 16 * 48, 2 * 5 * 8 * 5, 2 * 5 * 5 * 8
    rest = [5 * 16 * 16, 5 * 16 * 32, 5 * 32 * 16, 16 * 4]
    assert [layer.macs for layer in found] == [patches, qkv, scores, mixed, *rest]
    assert [layer.name for layer in found if not layer.weighted] == [
        "/encoder/layers.0/self_attn/MatMul_1",
        "/encoder/layers.0/self_attn/MatMul_2",
    ]


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (image_network(), (1, 8, 8)),
        (vision_transformer(), (1, 8, 8)),
        (digits_network(), (1, 8, 8)),
        (
            nn.Sequential(nn.Conv1d(4, 6, 5, stride=3), nn.ConvTranspose1d(6, 4, 2, groups=2)),
            (4, 40),
        ),
    ],
)
def test_the_traced_layers_of_a_module_are_those_of_its_file(tmp_path, module, shape):
    module.eval()
    write_onnx(tmp_path / "net.onnx", module, torch.zeros(1, *shape))
    of_file = workload_of_option(str(tmp_path / "net.onnx")).layers
    traced = workload_of_option({"python": module, "input": list(shape)}).layers
    assert [_unnamed(one) for one in traced] == [_unnamed(one) for one in of_file]


def _unnamed(layer):
    return {name: getattr(layer, name) for name in layer.__slots__ if name != "name"}


def test_traced_layers_have_the_names_of_their_weights():
    found = workload_of_option({"python": vision_transformer(), "input": [1, 8, 8]}).layers
    attention = "encoder.layers.0.self_attn"
    assert [layer.name for layer in found[:5]] == [
        "patches",
        f"{attention}.in_proj_weight",
        f"{attention}.product",
        f"{attention}.product2",
        f"{attention}.out_proj",
    ]


def test_the_steps_of_a_recurrent_cell_are_rows_of_its_products():
    found = workload_of_option({"python": Recurrent(), "input": [5, 6]})
    cell, next_cell = 2 * 5 * 32 * (6 + 8), 2 * 5 * 32 * (16 + 8)
    assert found.table.macs == cell + next_cell + 16 * 3
    assert found.table.parameters == sum(one.numel() for one in Recurrent().parameters())


def test_tokens_tied_weights_and_products_by_a_matrix_on_the_left_are_traced():
    module = MixedTokens()
    table = workload_of_option({"python": module, "input": [12]}).table
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(torch.zeros(1, 12, dtype=torch.int64))
    assert table.macs == counter.get_total_flops() // 2
    (words,) = table.lookups
    assert (words.rows, words.width, words.picked, words.shared) == (50, 8, 12, True)
    assert table.parameters == 50 * 8 + 6 * 12


def test_a_network_by_name_by_file_and_as_a_module_takes_the_same_cycles(tmp_path):
    write_onnx(tmp_path / "net.onnx", digits_network(), torch.zeros(1, 1, 8, 8))
    named = cycles("digits-cnn")
    assert named == cycles(str(tmp_path / "net.onnx"))
    assert named == cycles(f"onnx:{tmp_path / 'net.onnx'},n=1")
    assert named == cycles({"python": digits_network(), "input": [1, 8, 8]})


def test_a_gpu_and_a_regrouped_network_read_the_same_file(tmp_path):
    path = tmp_path / "net.onnx"
    write_onnx(path, digits_network(), torch.zeros(1, 1, 8, 8))
    batch = Batch.of(
        [{"device": "a100-sxm-80gb", "format": "bf16", "group": 4, "number_format": "int8"}]
    )
    for use, metric in (("accelerators.gpu", "latency"), ("accelerators.group-size", "energy")):
        by_name, by_file = (
            make("evaluators", use, workload=workload).evaluate(batch).columns[metric].tolist()
            for workload in ("digits-cnn", str(path))
        )
        assert by_file == by_name


def test_a_config_of_published_sizes_is_the_named_language_model(tmp_path):
    sizes = {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32}
    heads = {"num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **sizes, **heads}))
    for keys in ("prefill=256", "decode=4096,batch=8"):
        found = workload_of_option(f"{tmp_path}:{keys}").table
        assert found == table_of(f"llama2-7b:{keys}")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (
            {
                "model_type": "gpt2",
                "n_layer": 12,
                "n_embd": 768,
                "n_head": 12,
                "vocab_size": 50257,
                "n_positions": 1024,
            },
            "gpt2:prefill=64",
        ),
        (
            {
                "model_type": "bert",
                "num_hidden_layers": 12,
                "hidden_size": 768,
                "num_attention_heads": 12,
                "intermediate_size": 3072,
                "vocab_size": 30522,
                "max_position_embeddings": 512,
                "type_vocab_size": 2,
            },
            "bert-base:tokens=64",
        ),
    ],
)
def test_gpt2_and_bert_are_read_by_the_keys_of_their_files(tmp_path, config, name):
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert workload_of_option(f"{tmp_path}:{name.partition(':')[2]}").table == table_of(name)


def test_a_folder_with_safetensors_has_the_products_of_its_decoder(tmp_path):
    folder = write_llama(tmp_path / "llama")
    found = workload_of_option({"file": str(folder), "prefill": 12}).table
    hidden, wide, words = (LLAMA[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
    block = 12 * (hidden * (hidden + 2 * 8) + hidden * hidden + 3 * hidden * wide)
    assert (
        found.macs == block + 2 * 4 * 12 * 4 * 12 + hidden * words
    )  # attention, head of one token


def test_a_like_model_has_other_sizes():
    found = workload_of_option({"like": "llama3-8b", "layers": 2, "decode": 64}).layers
    assert len(found) == 2 * 6 + 1


def test_open_axes_get_the_shape_of_one_example(tmp_path):
    path = tmp_path / "net.onnx"
    _write_product(path, "MatMul", ["n", "tokens", 4])
    for value in (
        f"{path}:tokens=7",
        {"file": str(path), "input": [7, 4]},
        {"file": str(path), "input": {"x": [7, 4]}},
        {"file": str(path), "tokens": 7},
    ):
        assert workload_of_option(value).table.macs == 7 * 4 * 5


def test_paths_are_relative_to_the_study_file(tmp_path, monkeypatch):
    elsewhere = tmp_path / "else"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    write_onnx(tmp_path / "net.onnx", digits_network(), torch.zeros(1, 1, 8, 8))
    for workload in ("net.onnx", "./net.onnx:n=1", "{file: net.onnx}", "'onnx:net.onnx,n=1'"):
        done = CliRunner().invoke(app, ["check", write_chip_study(tmp_path, workload)])
        assert done.exit_code == 0, done.output


def test_the_layers_of_a_file_are_part_of_the_evaluators_version(tmp_path):
    path = tmp_path / "net.onnx"
    versions = []
    for width in (8, 9, 8):
        write_onnx(path, nn.Linear(4, width), torch.zeros(1, 4))
        versions.append(make("evaluators", "accelerators.systolic", workload=str(path)).version)
    assert versions[0] == versions[2] != versions[1]
    assert make("evaluators", "accelerators.systolic", workload="digits-cnn").version == "3"


def test_check_prints_what_the_layers_leave_out(tmp_path):
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    done = CliRunner().invoke(app, ["check", write_chip_study(tmp_path, "net.onnx")])
    assert "operators of net.onnx that are not matrix products" in " ".join(done.output.split())


def test_a_function_is_called_by_run_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    study = write_chip_study(tmp_path, '{python: "net.py:make", input: [64]}')
    done = CliRunner().invoke(app, ["check", study])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "imported").exists()
    done = CliRunner().invoke(app, ["run", study])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "imported").exists()


def test_a_module_is_the_workload_of_a_study_in_python():
    study = Study(
        "mine",
        Space({"rows": [4, 8], "dataflow": ["os", "ws"]}),
        evaluators={
            "chip": {
                "use": "accelerators.systolic",
                "workload": {"python": digits_network(), "input": [1, 8, 8]},
                "cols": 8,
            }
        },
        minimize="chip.cycles",
        optimizer="exhaustive",
        storage="memory://",
    )
    study.run()
    best = min(trial.metrics["chip.cycles"] for trial in study.trials)
    assert best == min(cycles("digits-cnn") + cycles("digits-cnn", rows=4))


@pytest.mark.parametrize(
    ("value", "problem", "hint"),
    [
        ("nat.onnx", "there is no file", "did you mean 'net.onnx'?"),
        ("net.onnx", "net.onnx has axes without a size: tokens", "net.onnx:tokens=1; or the shape"),
        ("net.onnx:token=7", "no open axis 'token'", "did you mean 'tokens'?"),
        ("net.onnx:tokens=0", "tokens is '0'", "did you mean 1?"),
        ({"file": "net.onnx", "input": [7]}, "no input of shape [7]", "x: [n, tokens, 4]"),
        ({"file": "net.onnx", "input": {"y": [7, 4]}}, "no input 'y'", "valid: x"),
        ({"file": "net.onnx", "input": "7x4"}, "input cannot be '7x4'", "as in [3, 32, 32]"),
        ({"file": "fixed.onnx", "input": [4]}, "input has no effect on fixed.onnx", "x: [1, 4]"),
        ({"file": "net.onnx", "python": "net.py:make"}, "one of the keys file, python", "a path"),
        ("einsum.onnx", "cannot be read as layers: Einsum", "MatMul, Gemm and Conv"),
        ("relu.onnx", "relu.onnx has no layer that is a matrix product", "convolutions"),
        ("net.pt", "net.pt is a pickle", "torch.onnx.export"),
        ("net.py", "net.py is a program", "{python: net.py:make}"),
        ({"python": "net.py:make"}, "needs the shape of its input", "input: [3, 32, 32]"),
        ({"python": "net.py:mkae", "input": [64]}, "defines no 'mkae'", "did you mean 'make'?"),
        ({"python": "net.py:make", "inputs": [64]}, "no key 'inputs'", "did you mean 'input'?"),
        ("words.onnx", "is not an ONNX model", ""),
        ("./llama:tokens=7", "has no key 'tokens'", "prefill"),
        ("./llama:decode=17", "layers of llama attend to 16 tokens, fewer than 17", "at most 16"),
        ({"file": "llama", "input": [7]}, "input has no meaning for llama", "llama:prefill=128"),
    ],
)
def test_a_workload_that_cannot_be_read_gives_one_error_with_its_mend(
    tmp_path, monkeypatch, value, problem, hint
):
    monkeypatch.chdir(tmp_path)
    _write_odd_files(tmp_path)
    with pytest.raises(SpecError) as caught:
        make("evaluators", "accelerators.systolic", workload=value)
    assert problem in caught.value.problem
    assert hint in caught.value.hint
    assert caught.value.part[0] == "workload"
    assert not (tmp_path / "imported").exists()


def _write_odd_files(folder):
    _write_product(folder / "net.onnx", "MatMul", ["n", "tokens", 4])
    _write_product(folder / "fixed.onnx", "MatMul", [1, 4])
    _write_product(folder / "einsum.onnx", "Einsum", [1, 4], equation="ij,jk->ik")
    _write_product(folder / "relu.onnx", "Relu", [1, 4])
    (folder / "net.pt").write_bytes(b"pickle")
    (folder / "net.py").write_text(NET)
    (folder / "words.onnx").write_text("words")
    write_llama(folder / "llama", sliding_window=16, model_type="mistral")


def _write_product(path, operator, axes, **attributes):
    value, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    operands = ["x", "w"][: 1 if operator == "Relu" else 2]
    node = onnx.helper.make_node(operator, operands, ["out"], **attributes)
    weights = [onnx.numpy_helper.from_array(np.zeros((4, 5), np.float32), "w")]
    signals = [value("x", kind, axes)], [value("out", kind, None)]
    graph = onnx.helper.make_graph([node], "graph", *signals, initializer=weights)
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset), str(path))


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (nn.Linear(4, 5), "Linear cannot be run with the input of [1, 3]"),
        (nn.Bilinear(4, 4, 5), "cannot be run"),
    ],
)
def test_a_module_that_does_not_take_the_input_is_refused(module, problem):
    with pytest.raises(DseError, match=r"cannot be run") as caught:
        make("evaluators", "accelerators.systolic", workload={"python": module, "input": [3]})
    assert problem in str(caught.value)


def test_an_operator_that_multiplies_and_is_not_read_is_named():
    class Spectrum(nn.Module):
        def forward(self, signal):
            return torch.fft.rfft(signal).abs()

    with pytest.raises(EvaluationError, match="cannot be read as a layer: _fft_r2c"):
        _ = workload_of_option({"python": Spectrum(), "input": [8]}).table


def test_the_layers_written_by_hand_are_those_of_the_module():
    traced = workload_of_option({"python": digits_network(), "input": [1, 8, 8]}).layers
    assert [one.macs for one in traced] == [one.macs for one in DIGITS_CNN]
    assert [one.macs for one in layers_of("digits-cnn")] == [one.macs for one in traced]
