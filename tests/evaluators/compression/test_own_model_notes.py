"""`dse check` names the layers of a user's model that stay in single precision."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from dse.cli.app import app
from dse_evaluators.compression.recipe_size import Size
from tests.evaluators.compression.own_models import (
    image_network,
    write_images,
    write_onnx,
    write_study,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path / "data.npz")
    write_study(tmp_path, "model: net.onnx, data: data.npz, quality: accuracy")
    return tmp_path


def _check(*options):
    done = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["check", "study.yaml", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def _transposed():
    torch.manual_seed(0)
    layers = nn.ConvTranspose2d(1, 2, 2), nn.Flatten(), nn.Linear(162, 4)
    return nn.Sequential(*layers).eval()


def test_transposed_convolution_is_named_with_its_share(folder):
    write_onnx(folder / "net.onnx", _transposed(), torch.zeros(1, 1, 8, 8))
    assert "quality: 1.2% of the weights of net.onnx stay in single precision" in _check()
    (judged,) = json.loads(_check("--format", "json"))
    (note,) = judged["notes"]["quality"]
    assert note.endswith("no operator applies to their layers: 0.weight")


def test_model_whose_layers_can_all_be_compressed_has_no_note(folder):
    write_onnx(folder / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    (judged,) = json.loads(_check("--format", "json"))
    assert judged["notes"] == {}


def test_many_layers_are_counted_after_the_first_six():
    made = Size(model=nn.Sequential(nn.Linear(3, 3), nn.GRU(3, 3, num_layers=5)))
    assert made.notes[0].endswith("1.weight_ih_l2, 1.weight_hh_l2, 4 more")
