"""`dse init --model`: the study that it writes for a model of the user is valid and runs."""

from __future__ import annotations

import pytest
import torch

import dse
from dse import Study
from dse.core.batch import Batch
from dse.errors import SpecError, SpecErrors
from dse.registry import make
from dse.schema.study.plan import plan_of
from tests.evaluators.compression.own_models import (
    MLP,
    image_network,
    write_images,
    write_llama,
    write_onnx,
    write_table,
    write_tokens,
)

BUFFERS = {"ifmap_sram": 16384, "filter_sram": 16384, "ofmap_sram": 16384}
CHIP = {"rows": 8, "cols": 8, "dataflow": "os", **BUFFERS}


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


def test_study_with_a_chip_joins_formats_and_the_layers_of_a_file(folder):
    dse.init("first", model="net.onnx", data="data.npz", chip=True)
    study = Study.open("first/study.yaml", storage="memory://")
    formats = {f"weight_format[{place}]": "int4:channel" for place in range(4)}
    formats["activation_format"] = "int8:channel"
    trial = study.evaluate({**formats, **CHIP})[0]
    assert trial.metrics["chip.energy"] > 0
    assert trial.metrics["quality.accuracy"] > 0
    chip = make("evaluators", "accelerators.systolic", workload="net.onnx")
    batch = Batch.of([dict(trial.design)])
    assert trial.metrics["chip.cycles"] == chip.evaluate(batch).columns["cycles"][0]


@pytest.mark.parametrize(
    ("model", "data", "quality", "workload"),
    [
        ("./llama", "tokens.npz", "perplexity", 'workload: {file: "../llama", prefill: 12}'),
        ("net.py:make", "people.csv", "f1", '{python: "../net.py:make", input: [3]}'),
    ],
)
def test_study_with_a_chip_gets_the_shape_of_the_examples(folder, model, data, quality, workload):
    write_llama(folder / "llama")
    write_tokens(folder / "tokens.npz")
    (folder / "net.py").write_text(MLP)
    write_table(folder / "people.csv")
    dse.init("first", model=model, data=data, quality=quality, chip=True)
    text = (folder / "first" / "study.yaml").read_text()
    assert workload in text
    assert 'activations: "{activation_format}"' in text
    plan_of(folder / "first" / "study.yaml")


def test_chip_needs_the_shape_of_the_examples(folder):
    (folder / "net.py").write_text(MLP)
    with pytest.raises(SpecError, match="the shape of the examples is not known"):
        dse.init("first", model="net.py:make", data="net.py:make", chip=True)
    assert not (folder / "first").exists()


def test_template_runs_with_the_formats_of_both_evaluators():
    study = Study.open("library:studies/own_model.yaml", storage="memory://")
    array = {**CHIP, "voltage": 0.8, "clock": 2e8, "dram_bandwidth": 4e8}
    of_chip = {f"chip.{name}": value for name, value in array.items()}
    both = [
        {"weight_format": form, "activation_format": "int8:channel", **of_chip}
        for form in ("int8:channel", "int4:channel")
    ]
    eight, four = study.evaluate(*both)
    assert eight.metrics["quality.accuracy"] > 0.9
    macs = 64 * 16 * 9 + 64 * 16 * 9 + 64 * 32 * 16 + 512 * 10
    assert eight.metrics["chip.utilization"] * eight.metrics["chip.cycles"] * 64 == pytest.approx(
        macs
    )
    weights, filters = 16 * 9 + 16 * 9 + 32 * 16 + 512 * 10, 16 + 16 + 32 + 10
    saved = eight.metrics["chip.model_size"] - four.metrics["chip.model_size"]
    assert saved == pytest.approx(weights / 2)
    assert eight.metrics["chip.model_size"] == pytest.approx(weights + filters * 2)  # fp16 scales


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
        ({"chip": True}, "needs its model"),
        ({"model": "net.onnx", "data": "d.npz", "parameters": ["a = 1..4"]}, "its own parameters"),
    ],
)
def test_arguments_that_exclude_one_another_are_refused_in_python_too(given, problem, tmp_path):
    with pytest.raises(SpecError, match=problem):
        dse.init(tmp_path / "first", **given)
    assert not (tmp_path / "first").exists()
