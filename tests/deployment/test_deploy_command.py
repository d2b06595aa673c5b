"""A trial's compressed model as files: which trial, what is refused, and what is printed of the size."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from dse import Study
from dse.cli.app import app
from dse.errors import StudyError
from dse.protocols import DeployedModel, DeployedTensor, Quantization
from dse_evaluators.compression.model_layers import weights
from dse_evaluators.compression.recipe_evaluator import ByRecipe

SPACE = """
space: formats
parameters:
  bits: {choice: ["int4:group=32", "int8:channel", ternary]}
"""
STUDY = """
study: lm
space: space.yaml
evaluators:
  lm: {use: compression.size, model: shakespeare-lm, recipe: "format {bits}"}
objectives:
  - minimize: lm.size
optimizer: exhaustive
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A measured study of three formats of which two are on the front, and one without a model."""
    folder = tmp_path_factory.mktemp("deployed")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "small.yaml").write_text(STUDY.replace("study: lm", "study: small"))
    text = STUDY.replace("compression.size", "compression.recipe").replace("study: lm", "study: lm")
    (folder / "lm.yaml").write_text(
        text.replace(
            "  - minimize: lm.size\n", "  - minimize: lm.size\n  - maximize: lm.accuracy\n"
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("small", "lm"):
            done = CliRunner().invoke(app, ["run", f"{name}.yaml", "-q"])
            assert done.exit_code == 0, done.exception
    return folder


@pytest.fixture(autouse=True)
def here(world, monkeypatch):
    monkeypatch.chdir(world)


def deploy(*words):
    done = CliRunner().invoke(app, ["deploy", *words])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_a_state_dict_has_the_weights_that_were_measured(tmp_path):
    trial = next(one for one in Study.load("lm").trials if one.design["bits"] == "ternary")
    file = tmp_path / "model.pt"
    deploy("lm", "--trial", str(trial.number), "--to", "torch", "-o", str(file))
    state = torch.load(file, weights_only=True)
    recipes = ByRecipe(model="shakespeare-lm", recipe="format ternary").recipes({})
    measured = weights("shakespeare-lm", recipes)
    assert all((state[name].numpy() == values).all() for name, values in measured.items())
    recipe = json.loads((tmp_path / "model.pt.recipe.json").read_text())
    assert (recipe["trial"], recipe["design"]) == (trial.number, {"bits": "ternary"})
    assert recipe["tensors"]["head"]["recipe"] == "format ternary"


def test_the_favourite_is_deployed_without_a_number(tmp_path):
    study = Study.load("lm")
    first, *_, last = study.front
    with pytest.raises(StudyError, match="the front of 'lm' has 3 designs: trials") as caught:
        study.deploy("torch", tmp_path / "model.pt")
    assert "dse choose lm" in caught.value.hint
    for other in study.front:
        if other.number != last.number:
            study.prefer(last, other)
    assert study.deploy("torch", tmp_path / "model.pt").trial == study.favourite().trial
    assert first.number != last.number


def test_the_size_of_the_file_stands_next_to_that_of_the_study(tmp_path):
    study = Study.load("lm")
    trial = next(one for one in study.trials if one.design["bits"] == "int8:channel")
    done = study.deploy("safetensors", tmp_path / "model.safetensors", trial=trial)
    rows = {row.purpose: (row.study_bytes, row.file_bytes) for row in done.sizes}
    assert rows["codes"] == (347904, 347904)
    assert rows["unquantized"] == (2688, 2688)
    assert rows["scales"] == (5520, 2 * 5520 + 14 * 16)  # float32 in place of fp16; 14 shapes
    assert rows["total"][0] == trial.metrics["lm.size"]
    assert rows["total"][1] == (tmp_path / "model.safetensors").stat().st_size
    counted = [name for name in rows if name != "total"]
    assert sum(rows[name][0] for name in counted) == rows["total"][0]
    assert sum(rows[name][1] for name in counted) == rows["total"][1]


def test_an_existing_config_keeps_its_other_keys(tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 96, "quantization_config": {}}')
    deploy("lm", "--trial", "1", "--to", "safetensors", "-o", str(tmp_path / "m.safetensors"))
    found = json.loads((tmp_path / "config.json").read_text())
    assert found["hidden_size"] == 96
    assert found["quantization_config"]["quant_method"] == "compressed-tensors"


def test_what_a_target_cannot_hold_is_refused_with_the_nearest_that_it_can(tmp_path):
    trial = next(one for one in Study.load("lm").trials if one.design["bits"] == "ternary")
    words = ["lm", "--trial", str(trial.number), "-o", str(tmp_path / "model"), "--to"]
    with pytest.raises(StudyError, match=r"cannot hold 'embed'.*'format ternary'") as caught:
        deploy(*words, "safetensors")
    assert "int4 or int8 or fp8_e4m3" in caught.value.hint
    assert "--to torch" in caught.value.hint
    assert not list(tmp_path.iterdir())


def test_a_study_whose_evaluator_gives_no_model_is_an_error(tmp_path):
    with pytest.raises(StudyError, match="no evaluator of 'small' can give a compressed model"):
        deploy("small", "--to", "torch", "-o", str(tmp_path / "model.pt"))


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--to", "safetensor", "-o", "m"], "no target 'safetensor'", "'safetensors'"),
        (["--to", "torch", "-o", "m.safetensors"], "the extension of --to safetensors", "m.pt"),
        (["--to", "torch", "-o", "m", "--trial", "9"], "there is no trial 9", "0 to 2"),
        (["--to", "torch", "-o", "m", "--evaluator", "ml"], "no evaluator 'ml'", "valid: lm"),
    ],
)
def test_a_mistake_in_the_command_is_named_with_its_mend(words, message, hint):
    with pytest.raises(StudyError, match=message) as caught:
        deploy("lm", *words)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (np.ones((2, 2), np.float32), "that its numbers and scales do not represent"),
        (np.ones((2, 2)), "of type float64"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(values, problem, monkeypatch, tmp_path):
    stored = Quantization(
        element="int8",
        numbers=np.full((2, 2), 2, np.float32),
        scales=np.ones((1, 1), np.float32),
    )
    model = DeployedModel(tensors={"fc": DeployedTensor(values=values, stored=stored)})
    monkeypatch.setattr(ByRecipe, "deployed_model", lambda *_: model)
    with pytest.raises(StudyError, match=f"tensor 'fc' of the evaluator 'lm' has values {problem}"):
        Study.load("lm").deploy("torch", tmp_path / "model.pt", trial=0)
