"""Models that packages register by an entry point: found by name, made only to be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.errors import DseError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads import model_factories
from dse_evaluators.workloads.models import MODELS
from dse_evaluators.workloads.own import plugin_model
from dse_evaluators.workloads.own.named_model import model_ref
from tests.plugins.test_pages_of_authors import FILE, HOW_TO, commands_of, typed

PAGE = "own-registered-model"
MODULE = """
import numpy as np
from torch import nn

made = []

def later():
    made.append(1)
    return nn.Linear(3, 2)

def good():
    data = (np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2)
    return {"model": later, "data": lambda: data, "quality": "accuracy"}

def whole():
    return {"model": nn.Linear(3, 2), "data": good()["data"]()}

def no_mapping():
    return nn.Linear(3, 2)

def odd_key():
    return {"model": later, "qualty": "accuracy"}

def leaves():
    raise SystemExit("bye")

def pickled():
    return {"model": "net.pt"}

number = 3
"""
POINTS = [
    "good",
    "whole",
    "no_mapping",
    "odd_key",
    "leaves",
    "pickled",
    "number",
    "absent",
]


@pytest.fixture
def package(tmp_path, monkeypatch):
    about = tmp_path / "stranger-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    rows = [f"s-{name} = stranger_models:{name}" for name in POINTS]
    rows.append("digits-cnn = stranger_models:good")
    (about / "entry_points.txt").write_text("\n".join(["[dse.models]", *rows, ""]))
    (tmp_path / "stranger_models.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    caches = (model_factories._others, model_factories._built_in, plugin_model.plugin_parts)
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


@pytest.mark.parametrize("name", MODELS)
def test_built_in_models_are_entry_points_of_this_package(name, package):
    factory = model_factories.load_factory(name, built_in=True)
    assert factory.__module__.startswith("dse_evaluators.workloads.")


def test_functions_of_a_registered_model_run_only_when_it_is_measured(package):
    made = ByRecipe(model="s-good", recipe="format int8:channel")
    import stranger_models

    assert stranger_models.made == []
    assert next(iter(made.provides)) == "accuracy"
    workload = made._model.make()
    assert stranger_models.made == [1]
    assert workload.compressible == ("weight",)


def test_module_in_the_mapping_has_its_layers_and_the_usual_metric(package):
    own = model_ref("s-whole", runs=True)
    assert own.layers == ("weight",)
    assert list(own.metrics) == ["cosine"]


def test_a_study_may_name_other_metrics_of_a_registered_model(package):
    assert list(model_ref("s-good", None, "loss", runs=True).metrics) == ["loss"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("s-no_mapping", "is a Linear without a key 'model'"),
        ("s-odd_key", "did you mean 'quality'"),
        ("s-leaves", "SystemExit: bye"),
        ("s-pickled", "of stranger 1.0: net.pt is a pickle"),
        ("s-number", "which is no function"),
        ("s-absent", "cannot be imported: AttributeError"),
        ("s-god", "did you mean 's-good'"),
    ],
)
def test_unfit_registered_model_is_an_error_with_its_origin(name, words, package):
    with pytest.raises(DseError) as found:
        model_ref(name, runs=True)
    assert words in str(found.value)


def test_data_of_a_registered_model_is_refused(package):
    with pytest.raises(DseError, match="has its own data"):
        model_ref("s-good", "data.npz")


@pytest.mark.slow
def test_the_commands_of_the_page_work_as_written(tmp_path):
    text = (HOW_TO / f"{PAGE}.md").read_text()
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    printed = {}
    for command in commands_of(PAGE):
        code, printed[command] = typed(Path(tmp_path), command)
        assert code == 0, f"{command}\n{printed[command]}"
    rows = [line.split() for line in printed["dse plugins list"].splitlines()]
    assert ["models", "blobs", "dse-blobs"] in rows
    assert "front" in printed["dse run study.yaml"]
    assert len(text.split()) < 800
