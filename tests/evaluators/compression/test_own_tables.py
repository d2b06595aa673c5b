"""Tables with texts as the data of a user's model, and streams of token ids for `dse init`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dse.errors import EvaluationError, SpecError
from dse.services.init.model_study import ModelAnswer, write_model_study
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_data import data_source
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import write_llama, write_onnx

CITIES = ["Rome", "Oslo", "Bonn"] * 10


@pytest.fixture
def people(tmp_path):
    """A table with a column of texts, and a target of texts."""
    lines = [f"{20 + row},{city},{'yes' if row % 2 else 'no'}" for row, city in enumerate(CITIES)]
    (tmp_path / "people.csv").write_text("\n".join(["age,city,label", *lines]))
    return tmp_path / "people.csv"


def _load(file, **settings):
    return data_source({"file": str(file), **settings}).load()


def test_texts_are_columns_of_their_own_or_places_in_their_order(people):
    one_hot = _load(people, texts={"city": "one-hot"})
    assert one_hot.inputs[:3].tolist() == [[20, 0, 0, 1], [21, 0, 1, 0], [22, 1, 0, 0]]
    assert _load(people, texts={"city": "codes"}).inputs[:3].tolist() == [[20, 2], [21, 1], [22, 0]]
    assert one_hot.targets.tolist() == [0, 1] * 15


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, "the column city has texts, such as 'Rome'"),
        ({"texts": {"city": "onehot"}}, "cannot become 'onehot'"),
        ({"texts": {"town": "codes"}}, "valid: age, city"),
        ({"texts": "city"}, "texts of people.csv cannot be 'city'"),
    ],
)
def test_texts_without_a_way_to_numbers_are_refused(people, settings, wanted):
    with pytest.raises(SpecError) as caught:
        _load(people, **settings)
    assert wanted in f"{caught.value} {caught.value.hint}"
    assert caught.value.hint


def test_texts_of_other_data_have_no_effect(tmp_path):
    with pytest.raises(SpecError, match="texts names columns of a table"):
        data_source({"arrays": np.ones((9, 3)), "texts": {"a": "codes"}}).load()


def test_first_study_cuts_a_stream_of_token_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_llama(tmp_path / "llama")
    np.savez(tmp_path / "text.npz", tokens=np.random.default_rng(0).integers(0, 32, 2000))
    answer = ModelAnswer(model="./llama", data="text.npz")
    texts = write_model_study("first", "Which?", answer, tmp_path / "first")
    assert 'data: {file: "../text.npz", length: 64}, quality: accuracy' in texts["study.yaml"]


def test_integers_for_an_input_of_floats_are_refused(tmp_path):
    write_onnx(tmp_path / "net.onnx", nn.Linear(3, 2), torch.zeros(1, 3))
    data = (np.arange(90).reshape(30, 3), np.arange(30) % 2)
    workload = model_ref(str(tmp_path / "net.onnx"), data, "accuracy", runs=True).make()
    with pytest.raises(EvaluationError, match="has floats, but the data has integers") as caught:
        workload.outputs(workload.parameters, "search", Signals())
    assert "np.float32(255)" in caught.value.hint
