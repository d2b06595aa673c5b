"""A small study whose designs can be checked by hand, in a database of its own."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  n: {integer: [1, 6]}
  rich: {integer: [0, 1]}
"""

STUDY = """
study: tiny
space: space.yaml
evaluators:
  m:
    use: expression
    metrics:
      latency: {formula: 60 ms / n, unit: s}
      cost: {formula: 1 $ * (n + rich), unit: $}
      area: {formula: 1 mm2 * (rich * 2 + (1 - rich) * (9 - n)), unit: mm2}
objectives:
  - {minimize: m.latency, label: delay}
  - minimize: m.cost
reference: {delay: 80 ms, m.cost: 9 $}
constraints: [m.area <= 8 mm2]
optimizer: random
budget: {trials: 12}
"""
"""Twelve designs: those with ``rich: 0`` are the front, the others cost 1 $ more and are smaller."""

PROVED = STUDY.replace("tiny", "proved").replace("random\nbudget: {trials: 12}", "exhaustive")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Folder with ``tiny``, all twelve designs, and ``proved``, only their front, in ``dse.db``.

    Tests that record answers use a copy.
    """
    here = tmp_path_factory.mktemp("tiny")
    (here / "space.yaml").write_text(SPACE)
    (here / "tiny.yaml").write_text(STUDY)
    (here / "proved.yaml").write_text(PROVED)
    for name in ("tiny", "proved"):
        study = StudyEngine.open(here / f"{name}.yaml", storage=f"sqlite:///{here}/dse.db")
        study.run()
        study.storage.close()  # so that the file is complete when it is copied
    return here


@pytest.fixture
def command(folder, monkeypatch):
    """Function that runs ``dse`` with some words in that folder."""
    monkeypatch.chdir(folder)
    return lambda *words, **options: CliRunner().invoke(app, list(words), **options)
