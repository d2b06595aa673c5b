"""Characterising a space: a factorial study from its file to tables, JSON, CSV and the page."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from dse.cli.app import app

SPACE = """
space: s
parameters:
  rows:  {ordinal: [1, 2, 4]}
  clock: {real: [1, 3]}
  dummy: {boolean: true}
"""

STUDY = """
study: character
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 2 s * rows + clock * 1 s, unit: s}}}
objectives:
  - minimize: chip.time
optimizer: OPTIMIZER
unread: [dummy]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY.replace("OPTIMIZER", "factorial"))
    runner = CliRunner()
    return lambda *words: runner.invoke(app, list(words))


def test_a_factorial_study_evaluates_all_levels_and_tells_their_effects(run):
    assert run("run", "study.yaml").exit_code == 0
    told = json.loads(run("effects", "character", "--format", "json").output)
    (effects,) = told["effects"]
    spans = {one["parameter"]: one["span"] for one in effects["main"]}
    assert effects["trials"] == 18
    assert spans == pytest.approx({"rows": 6.0, "clock": 2.0, "dummy": 0.0})
    assert effects["additive_share"] == pytest.approx(1.0)
    assert [pair["share"] for pair in effects["interactions"]] == pytest.approx([0.0] * 3, abs=1e-9)


def test_effects_are_shown_as_a_table_and_on_the_page(run, tmp_path):
    run("run", "study.yaml")
    shown = run("effects", "character", "--metric", "chip.time").output
    assert "main effects explain 100 % of the variance" in " ".join(shown.split())
    assert run("report", "character", "-o", "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert "Main effects on chip.time" in page
    assert 'data-figure="effects-0"' in page


def test_effects_are_written_as_rows(run, tmp_path):
    run("run", "study.yaml")
    assert run("effects", "character", "-o", "effects.csv").exit_code == 0
    rows = list(csv.DictReader((tmp_path / "effects.csv").read_text().splitlines()))
    means = {
        row["from"]: float(row["mean"])
        for row in rows
        if row["parameter"] == "rows" and row["mean"]
    }
    assert means == pytest.approx({"1": 4.0, "2": 6.0, "4": 10.0})


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        ("{use: factorial, most: 9}", "18 are more than the 9"),
        ("{use: factorial, levels: 1}", "1 levels show no effect"),
        ("{use: factorial, resolution: 7}", "no fraction of resolution 7"),
        ("{use: factorial, level: 2}", "did you mean 'levels'"),
    ],
)
def test_levels_that_cannot_be_had_are_told_before_anything_runs(run, tmp_path, optimizer, words):
    (tmp_path / "study.yaml").write_text(STUDY.replace("OPTIMIZER", optimizer))
    told = run("check", "study.yaml")
    assert told.exit_code == 2
    assert "study.yaml:8: " in told.output
    assert words in told.output
