"""Residual branches of networks of the user: removal, names, test split, and mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.compression.depth_layer_drop import LayerDrop
from dse_evaluators.compression.residual_branches import ResidualBranches
from tests.evaluators.compression.own_models import (
    images,
    llama_weights,
    write_images,
    write_llama,
    write_onnx,
    write_tokens,
)

BRANCHES = {"ffn": ["blocks.*.first", "blocks.*.norm", "blocks.*.second"]}
NET = """\
from torch import nn
from tests.evaluators.compression.test_own_residual_branches import residual_network

def make():
    return residual_network(nn.Identity)
"""


class Residual(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 6, 3, padding=1)
        self.norm = norm
        self.second = nn.Conv2d(6, 4, 1)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return signal + self.second(torch.relu(self.norm(self.first(signal))))


class ResidualNetwork(nn.Module):
    def __init__(self, norm: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(norm()) for _ in range(3)])
        self.head = nn.Linear(4, 4)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(signal)).mean((2, 3)))


def residual_network(norm: Callable[[], nn.Module] = lambda: nn.BatchNorm2d(6)) -> nn.Module:
    torch.manual_seed(0)
    network = ResidualNetwork(norm)
    network(torch.randn(64, 1, 8, 8))  # moves the running statistics
    return network.eval()


def encoder() -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Flatten())


def measure(evaluator: LayerDrop, **design: object) -> dict[str, float]:
    found = evaluator.evaluate(Batch.of([design]))
    assert not found.failures, found.failures
    return {name: float(column[0]) for name, column in found.columns.items()}


def test_a_network_without_branches_is_that_of_its_other_layers() -> None:
    network = residual_network()
    evaluator = LayerDrop(model=network, data=images(), branches=BRANCHES, quality="loss")
    assert evaluator.reads == {"ffn"}
    whole = measure(evaluator, **{f"ffn[{place}]": True for place in range(3)})
    assert whole["deviation"] == 0.0
    assert whole["kept_weights"] == 1.0
    cut = measure(evaluator, **{"ffn[0]": True, "ffn[1]": False, "ffn[2]": True})
    shorter = residual_network()
    shorter.blocks = nn.Sequential(network.blocks[0], network.blocks[2])
    alone = LayerDrop(model=shorter, data=images(), branches=BRANCHES, quality="loss")
    assert cut["loss"] == pytest.approx(measure(alone, ffn=True)["loss"], rel=1e-6)
    branch = sum(one.numel() for one in network.blocks[1].parameters())
    total = sum(one.numel() for one in network.parameters())
    statistics = 2 * 6  # running mean and variance of a branch
    assert cut["kept_weights"] == pytest.approx(
        1 - (branch + statistics) / (total + 3 * statistics)
    )


def test_a_decoder_without_branches_is_its_embedding_norm_and_head(tmp_path: Path) -> None:
    folder = write_llama(tmp_path / "llama")
    write_tokens(tmp_path / "tokens.npz")
    evaluator = LayerDrop(
        model=str(folder), data={"file": str(tmp_path / "tokens.npz"), "inputs": "tokens"},
        quality="loss",
    )  # fmt: skip
    assert evaluator.reads == {"attention", "ffn"}
    cut = measure(evaluator, attention=False, ffn=False)
    weights = llama_weights()
    stream = weights["model.embed_tokens.weight"].astype(np.float64)
    normed = stream / np.sqrt((stream**2).mean(1, keepdims=True) + 1e-5)
    logits = normed * weights["model.norm.weight"] @ weights["lm_head.weight"].T
    chances = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    tokens = np.load(tmp_path / "tokens.npz")["tokens"]
    losses = [-chances[row[:-1], row[1:]].mean() for row in tokens]
    assert min(losses) <= cut["loss"] <= max(losses)
    assert cut["size"] < measure(evaluator, attention=True, ffn=False)["size"]
    assert math.isfinite(measure(evaluator, attention=False, ffn=True)["loss"])


def test_branches_of_encoder_layers_of_torch_are_known_by_name() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 5, 8)).astype(np.float32), rng.integers(0, 40, 40)
    evaluator = LayerDrop(model=encoder(), data=data, quality="loss")
    found = measure(evaluator, **{"attention[0]": True, "attention[1]": False, "ffn": True})
    assert found["deviation"] > 0.0
    evaluator.check_values({"attention[0]": [True], "attention[1]": [False], "ffn": [True]})
    with pytest.raises(SpecError, match="'attention' has 1 entries"):
        evaluator.check_values({"attention[0]": [True], "ffn": [True]})


def test_files_and_functions_have_the_branches_of_their_modules(tmp_path: Path) -> None:
    write_onnx(tmp_path / "net.onnx", residual_network(nn.Identity), torch.zeros(1, 1, 8, 8))
    write_images(tmp_path / "data.npz")
    (tmp_path / "net.py").write_text(NET)
    given = {"data": str(tmp_path / "data.npz"), "quality": "loss"}
    branches = {"ffn": ["blocks.*.first", "blocks.*.second"]}
    models = (
        str(tmp_path / "net.onnx"),
        {"python": f"{tmp_path / 'net.py'}:make"},
        residual_network(nn.Identity),
    )
    design = {"ffn[0]": False, "ffn[1]": True, "ffn[2]": False}
    losses = [
        measure(LayerDrop(model=one, **given, branches=branches), **design)["loss"]
        for one in models
    ]
    assert losses == pytest.approx([losses[2]] * 3, rel=1e-6)
    assert losses[1] == losses[2]


def test_a_list_of_another_length_is_a_failure_where_only_a_function_knows_it(
    tmp_path: Path,
) -> None:
    write_images(tmp_path / "data.npz")
    (tmp_path / "net.py").write_text(NET)
    model = {"python": f"{tmp_path / 'net.py'}:make"}
    evaluator = LayerDrop(
        model=model,
        data=str(tmp_path / "data.npz"),
        branches={"ffn": "blocks.*.second"},
        quality="loss",
    )
    evaluator.check_values({"ffn[0]": [True], "ffn[1]": [False]})
    assert "lengths of lists are not checked" in evaluator.notes[0]
    found = evaluator.evaluate(Batch.of([{"ffn[0]": True, "ffn[1]": False}]))
    assert "'ffn' has 2 entries" in found.failures[0].reason


def test_the_test_split_is_measured_with_resamples() -> None:
    evaluator = LayerDrop(
        model=residual_network(), data=images(120), branches=BRANCHES, quality="loss"
    )
    held_out = evaluator.test_evaluator()
    assert held_out is not None
    found = held_out.evaluate(Batch.of([{"ffn": False}]))
    resamples = [
        one[0] for name, one in found.columns.items() if name.startswith("loss") and name != "loss"
    ]
    assert min(resamples) < found.columns["loss"][0] < max(resamples)
    assert found.columns["loss"][0] != measure(evaluator, ffn=False)["loss"]


@pytest.mark.parametrize(
    ("branches", "problem", "hint"),
    [
        ({"ffn": "blocks.*.frist"}, "matches no parameter", "blocks.*.first"),
        ({"ffn": "head"}, "which is in no numbered block", "branches:"),
        ({"ffn": []}, "branches cannot be", "branches:"),
        (["ffn"], "branches cannot be", "branches:"),
        (None, "no residual branch is known by its name", "branches:"),
    ],
)
def test_branches_that_are_not_there_are_one_error(
    branches: object, problem: str, hint: str
) -> None:
    with pytest.raises(SpecError, match=problem) as raised:
        LayerDrop(model=residual_network(), data=images(), branches=branches)
    assert hint in str(raised.value.hint)
    assert raised.value.part == ("branches",)


def test_built_in_models_have_branches_of_their_own() -> None:
    with pytest.raises(SpecError, match="has its own branches"):
        LayerDrop(branches=BRANCHES)


def test_names_of_published_transformers_are_known() -> None:
    names = [
        "h.0.ln_1.weight",
        "h.0.attn.c_proj.weight",
        "h.0.mlp.c_fc.weight",
        "bert.encoder.layer.0.attention.self.query.weight",
        "bert.encoder.layer.0.attention.output.dense.weight",
        "bert.encoder.layer.0.attention.output.LayerNorm.weight",
        "bert.encoder.layer.0.output.dense.bias",
        "model.layers.0.block_sparse_moe.experts.0.w1.weight",
    ]
    found = ResidualBranches.of(names, None).parameters
    assert found["attention"] == ((names[1],), (names[3], names[4]))
    assert found["ffn"] == ((names[2],), (names[6],), (names[7],))
