"""An ONNX file of the user, quantized and run by onnxruntime: quality, size, latency, deployment."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dse.api.study import Study
from dse.core.batch import Batch
from dse.errors import DseError, SpecError, StudyError
from dse.protocols import RESAMPLE
from dse.services.studies.deploy import deploy_trial
from dse_evaluators.compression.onnx_models import OnnxModels
from dse_evaluators.workloads.resampling import RESAMPLES
from tests.evaluators.compression.own_models import image_network, images, write_onnx

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

SPACE = """\
space: formats
parameters:
  runtime_format: {choice: [fp32, static_int8, dynamic_int8, "int4:channel"]}
"""
STUDY = """\
study: mine
space: space.yaml
evaluators:
  net: {use: compression.onnx, model: ./net.onnx, data: ./data.npz, quality: [accuracy, cosine], repeats: 2, warmup: 0}
objectives: [{maximize: net.accuracy}, {minimize: net.size}]
optimizer: exhaustive
executor: serial
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("net")
    inputs, _ = images()
    net = image_network()
    targets = net(torch.tensor(inputs)).argmax(1).numpy()
    np.savez(place / "data.npz", inputs=inputs, targets=targets)
    write_onnx(place / "net.onnx", net, torch.tensor(inputs[:2]))
    (place / "space.yaml").write_text(SPACE)
    (place / "study.yaml").write_text(STUDY)
    return place


def evaluator(folder, **options) -> OnnxModels:
    given = {"model": str(folder / "net.onnx"), "data": str(folder / "data.npz")}
    return OnnxModels(**{**given, "quality": "accuracy", "repeats": 2, "warmup": 0, **options})


@pytest.fixture(scope="module")
def columns(folder):
    rows = [{"runtime_format": one} for one in ("fp32", "static_int8", "dynamic_int8", "int2")]
    found = evaluator(folder, quality=["accuracy", "cosine"]).evaluate(Batch.of(rows))
    assert not found.failures
    return found.columns


def test_unquantized_file_has_the_outputs_and_the_size_of_the_file(columns, folder):
    assert columns["accuracy"][0] == 1  # the targets are its own
    assert columns["cosine"][0] == pytest.approx(1)
    assert abs(columns["size"][0] - (folder / "net.onnx").stat().st_size) < 64


def test_int8_weights_take_a_quarter_and_change_the_outputs_less_than_two_bits(columns):
    weights, cosine = columns["weight_size"], columns["cosine"]
    assert weights[1] < 0.7 * weights[0]  # biases and scales of a small network count, too
    assert weights[2] < 0.7 * weights[0]
    assert 1e-8 < 1 - cosine[1] < 0.01
    assert 1e-8 < 1 - cosine[2] < 0.01
    assert 1 - cosine[3] > 10 * (1 - cosine[1])
    assert (columns["latency"] > 0).all()


def test_winner_is_written_as_the_file_that_was_measured(folder, monkeypatch):
    monkeypatch.chdir(folder)
    study = Study.open("study.yaml", storage="memory://")
    study.run()
    by_format = {one.design["runtime_format"]: one for one in study.trials}
    for form in ("static_int8", "int4:channel"):
        trial = by_format[form]
        file = folder / f"{trial.number}.onnx"
        made = deploy_trial(study.engine, "onnx", file, number=trial.number)
        assert file.stat().st_size == trial.metrics["net.size"]
        assert [one for one in made.sizes if one.study_bytes != one.file_bytes] == []
        assert bool(made.notes) == (form == "int4:channel")
        held = np.load(folder / "data.npz")
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        found = session.run(None, {"x": held["inputs"]})[0].argmax(1)
        assert (found == held["targets"]).mean() > 0.5
    with pytest.raises(StudyError, match="gives an ONNX file, which --to gguf cannot hold"):
        deploy_trial(study.engine, "gguf", folder / "net.gguf", number=0)


def test_test_split_has_resamples_of_the_quality_only(folder):
    tested = evaluator(folder, quality="cosine").test_evaluator()
    found = tested.evaluate(Batch.of([{"runtime_format": "int2"}]))
    assert found.columns["cosine"][0] < 1
    resamples = [v[0] for name, v in found.columns.items() if name.startswith("cosine" + RESAMPLE)]
    assert len(resamples) == RESAMPLES
    assert len(set(resamples)) > 1
    assert not [name for name in found.columns if name.startswith("latency" + RESAMPLE)]


@pytest.mark.parametrize("calibration", ["minmax", "percentile", "entropy"])
def test_calibration_takes_any_number_of_examples(folder, calibration):
    inputs, targets = images(400)  # 80 calibrate: a batch of 64, and one of 16
    made = evaluator(folder, data=(inputs, targets), calibration=calibration)
    found = made.evaluate(Batch.of([{"runtime_format": "static_int8"}]))
    assert not found.failures


class Product(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) @ self.weight

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(64, 4))


def test_operators_that_the_file_does_not_have_are_a_failure_of_the_design(folder, tmp_path):
    write_onnx(tmp_path / "product.onnx", Product(), torch.zeros(1, 1, 8, 8))
    made = evaluator(folder, model=str(tmp_path / "product.onnx"), quality="cosine")
    design = {"runtime_format": "static_int8", "operators": "convolutions"}
    found = made.evaluate(Batch.of([design, {**design, "operators": "products"}]))
    assert list(found.failures) == [0]
    assert "the model has no Conv" in str(found.failures[0])


def test_file_of_one_example_needs_batches_of_one(folder, tmp_path):
    write_onnx(tmp_path / "one.onnx", Product(), torch.zeros(1, 1, 8, 8), dynamic_axes={})
    options = {"model": str(tmp_path / "one.onnx"), "quality": "cosine"}
    rows = Batch.of([{"runtime_format": "fp32"}])
    assert not evaluator(folder, **options).evaluate(rows).failures
    failures = evaluator(folder, **options, batch=4).evaluate(rows).failures
    assert "does not run on inputs of shape x (4, 1, 8, 8)" in str(failures[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "digits-cnn", "data": None, "quality": None}, "digits-cnn is no ONNX file"),
        ({"model": image_network(), "data": images()}, "is no ONNX file"),
        ({"data": None}, "needs data to run on"),
        ({"model": "net.onxx"}, "net.onxx"),
        ({"quality": "acuracy"}, "acuracy"),
        ({"model": "magika"}, "magika has its own data"),
    ],
)
def test_models_that_onnxruntime_cannot_quantize_are_refused(folder, options, words):
    with pytest.raises((SpecError, DseError), match=words):
        evaluator(folder, **options)
