"""Outputs of a user's classifier: logits, probabilities, or a single one for two classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads.own.named_model import model_ref
from tests.evaluators.compression.own_models import write_onnx, write_study

CLASSES = ["accuracy", "loss", "f1", "divergence", "mismatch", "mismatch_on_correct"]


def _inputs():
    return torch.randn(90, 3, generator=torch.Generator().manual_seed(0))


def _network(*last: nn.Module) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1), *last)


class TwoColumns(nn.Module):
    """Outputs of a network of one output, with a zero before it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = _network()

    def forward(self, inputs):
        odds = self.network(inputs)
        return torch.cat([torch.zeros_like(odds), odds], dim=1)


def _measure(model, quality, recipe="format int2:channel"):
    labels = (_inputs()[:, 0] > 0).long()
    made = ByRecipe(model=model, data=(_inputs(), labels), quality=quality, recipe=recipe)
    found = made.evaluate(Batch.of([{}]))
    assert not found.failures, found.failures
    return {name: float(column[0]) for name, column in found.columns.items()}


def _reason(model, quality):
    made = ByRecipe(model=model, data=(_inputs(), torch.arange(90) % 2), quality=quality)
    return made.evaluate(Batch.of([{}])).failures[0].reason


def test_single_output_is_the_log_odds_of_class_1():
    single = _measure(_network(), [*CLASSES, "auc"])
    two = _measure(TwoColumns(), [*CLASSES, "auc"])
    names = {*CLASSES, "auc"}
    assert {n: single[n] for n in names} == {n: two[n] for n in names}
    assert single["mismatch"] > 0


def test_probabilities_have_the_metrics_of_the_logits_that_they_come_from():
    stated = {"metrics": [*CLASSES, "top-1"], "outputs": "probabilities"}
    logits = _measure(TwoColumns(), [*CLASSES, "top-1"])
    shares = _measure(nn.Sequential(TwoColumns(), nn.Softmax(dim=1)), stated)
    single = _measure(_network(nn.Sigmoid()), stated)
    for name in (*CLASSES, "top_1"):
        assert shares[name] == pytest.approx(logits[name], rel=1e-5), name
        assert single[name] == pytest.approx(logits[name], rel=1e-5), name
    assert (
        _measure(TwoColumns(), {"metrics": "loss", "outputs": "logits"})["loss"] == logits["loss"]
    )


def test_probability_of_zero_has_a_finite_logarithm():
    certain = _measure(
        nn.Sequential(nn.Linear(3, 2), nn.Hardtanh(10, 20), nn.Hardtanh(0, 0.5)),
        {"metrics": "loss", "outputs": "probabilities"},
        recipe="keep",
    )
    assert certain["loss"] == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("last", "quality", "wanted"),
    [
        (nn.Sigmoid(), "accuracy", "are all in 0 .. 1, but accuracy takes logits"),
        (nn.Softmax(dim=1), "loss", "add up to 1, but loss takes logits"),
    ],
)
def test_probabilities_that_are_not_called_so_are_refused(last, quality, wanted):
    network = _network(nn.Sigmoid()) if quality == "accuracy" else nn.Sequential(TwoColumns(), last)
    reason = _reason(network, quality)
    assert wanted in reason
    assert f"{{metrics: {quality}, outputs: probabilities}}" in reason


def test_order_of_classes_needs_no_logits():
    assert _measure(nn.Sequential(TwoColumns(), nn.Softmax(dim=1)), "accuracy")["accuracy"] > 0
    assert _measure(_network(nn.Sigmoid()), "auc")["auc"] > 0


@pytest.mark.parametrize(
    ("network", "wanted"),
    [
        (nn.Sequential(nn.Linear(3, 2), nn.Hardtanh(3, 4)), "they have a value of"),
        (nn.Sequential(nn.Linear(3, 2), nn.Hardtanh(0.1, 0.2)), "of an example add up to 0."),
    ],
)
def test_logits_that_are_called_probabilities_are_refused(network, wanted):
    reason = _reason(network, {"metrics": "loss", "outputs": "probabilities"})
    assert "are no probabilities" in reason
    assert wanted in reason


@pytest.mark.parametrize(
    ("quality", "wanted"),
    [
        ({"metrics": "loss", "outputs": "probability"}, "did you mean 'probabilities'"),
        ({"metrics": "loss"}, "outputs: probabilities"),
        ({"outputs": "logits"}, "quality names no metrics"),
        ({"metrics": "loss", "output": "logits"}, "quality has no key 'output'"),
        ({"metrics": ["mse"], "outputs": "probabilities"}, "mse does not apply to probabilities"),
    ],
)
def test_mistakes_in_the_kind_of_outputs_are_named(quality, wanted):
    with pytest.raises(SpecError) as caught:
        model_ref(nn.Linear(3, 2), (np.ones((9, 3)), np.arange(9) % 2), quality)
    assert wanted in f"{caught.value} {caught.value.hint}"
    assert tuple(caught.value.part) == ("quality",)


def test_functions_of_a_file_may_be_metrics_of_probabilities(tmp_path):
    from dse import Study

    write_onnx(tmp_path / "net.onnx", _network(nn.Sigmoid()), torch.zeros(1, 3))
    labels = (_inputs()[:, 0] > 0).numpy()
    np.savez(tmp_path / "data.npz", inputs=_inputs().numpy(), targets=labels)
    (tmp_path / "score.py").write_text(
        "def hits(outputs, targets):\n    return ((outputs[:, 0] > 0) == targets).mean()\n"
    )
    stated = '{metrics: [accuracy, {python: "score.py:hits"}], outputs: probabilities}'
    text = f"model: net.onnx, data: data.npz, quality: {stated}"
    study = Study.open(write_study(tmp_path, text), storage="memory://")
    study.run()
    for one in study.engine.finished:
        assert one.failure is None
        assert one.metrics["quality.hits"] == one.metrics["quality.accuracy"]
