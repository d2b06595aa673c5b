"""What a sweep compares can be compared again, from the same reference point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dse
from dse import Study
from dse.cli.app import app
from dse.errors import StudyError

SPACE = """
space: s
parameters:
  x: {ordinal: range(0 .. 10)}
  y: {ordinal: range(0 .. 10)}
"""
STUDY = """
study: swept
space: space.yaml
evaluators:
  m: {use: expression, metrics: {a: {formula: x + y}, b: {formula: 10 - x + y}}}
objectives: [{minimize: m.a}, {minimize: m.b}]
optimizer: random
budget: {trials: 12}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("sweep")
    (here / "space.yaml").write_text(SPACE)
    (here / "study.yaml").write_text(STUDY)
    return here


@pytest.fixture(scope="module")
def swept(folder: Path) -> dict:
    words = ["sweep", str(folder / "study.yaml"), "--optimizer", "random", "--optimizer", "sobol"]
    url = f"sqlite:///{folder}/dse.db"
    done = CliRunner().invoke(
        app, [*words, "--seeds", "2", "--quiet", "--storage", url, "--format", "json"]
    )
    assert done.exit_code == 0, done.output
    return {"url": url, "comparison": json.loads(done.stdout)}


def test_compare_takes_the_studies_of_a_sweep_as_the_sweep_did(swept):
    words = ["compare", "random=swept.random.*", "sobol=swept.sobol.*", "--format", "json"]
    done = CliRunner().invoke(app, [*words, "--storage", swept["url"]])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == swept["comparison"]


def test_so_does_python(swept):
    found = dse.compare("swept.*", storage=swept["url"])
    assert found.found.reference_from == "the joint nadir"


def test_a_study_beside_a_sweep_needs_a_reference_point(swept, folder):
    Study.open(folder / "study.yaml", name="alone", storage=swept["url"]).run()
    with pytest.raises(StudyError, match="no reference point"):
        dse.compare("swept.random.0", "alone", storage=swept["url"])
