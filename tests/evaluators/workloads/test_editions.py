"""A model's edition changes with what its weights come from."""

from __future__ import annotations

from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads import editions
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import MODELS


def test_every_model_has_an_edition_of_its_own():
    assert len({edition_of(model) for model in MODELS}) == len(MODELS)


def test_another_checkpoint_is_another_edition(tmp_path, monkeypatch):
    other = tmp_path / "other.npz"
    other.write_bytes(b"other weights")
    before = edition_of("shakespeare-lm")
    monkeypatch.setitem(editions._SHIPPED, "shakespeare-lm", other)
    assert edition_of.__wrapped__("shakespeare-lm") != before


def test_an_evaluators_version_has_its_models_edition():
    assert ByRecipe(model="shakespeare-lm").version.endswith(edition_of("shakespeare-lm"))
