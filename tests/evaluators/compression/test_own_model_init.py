"""`dse init --model`: the study that it writes for a model of the user is valid and runs."""

from __future__ import annotations

import pytest
import torch

import dse
from dse import Study
from dse.errors import SpecError, SpecErrors
from dse.schema.study.plan import plan_of
from tests.evaluators.compression.own_models import (
    MLP,
    image_network,
    write_images,
    write_onnx,
    write_table,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    write_images(tmp_path / "data.npz")
    return tmp_path


def test_study_of_an_onnx_file_has_a_format_for_each_layer_and_runs(folder):
    dse.init("first", model="net.onnx", data="data.npz")
    text = (folder / "first" / "study.yaml").read_text()
    assert "quality: accuracy" in text
    plan = plan_of(folder / "first" / "study.yaml")
    assert len(plan.problem.space.parameters) == 4
    study = Study.open("first/study.yaml", storage="memory://")
    trial = study.evaluate({f"bits[{place}]": "int8:channel" for place in range(4)})[0]
    assert trial.metrics["quality.size"] > 0


def test_study_of_a_function_has_one_format(folder):
    (folder / "net.py").write_text(MLP)
    write_table(folder / "people.csv")
    dse.init("first", model="net.py:make", data="people.csv", quality="f1")
    plan = plan_of(folder / "first" / "study.yaml")
    assert [one.name for one in plan.problem.space.parameters] == ["bits"]


def test_nothing_is_written_for_a_model_that_cannot_be_read(folder):
    with pytest.raises((SpecError, SpecErrors), match=r"there is no file"):
        dse.init("first", model="nett.onnx", data="data.npz")
    assert not (folder / "first").exists()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"data": "data.npz"}, "needs its model"),
        ({"model": "net.onnx"}, "needs its data"),
        ({"quality": "f1"}, "needs its model"),
        ({"model": "net.onnx", "data": "d.npz", "parameters": ["a = 1..4"]}, "its own parameters"),
    ],
)
def test_arguments_that_exclude_one_another_are_refused_in_python_too(given, problem, tmp_path):
    with pytest.raises(SpecError, match=problem):
        dse.init(tmp_path / "first", **given)
    assert not (tmp_path / "first").exists()
