"""Commands that take a study by its name take its file as well, and the storage of the file."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import DseError

SPACE = "space: one\nparameters:\n  x: {integer: [1, 4]}\n"
STUDY = """\
study: NAME
space: space.yaml
evaluators:
  f: {use: expression, metrics: {y: {formula: x * FACTOR}}}
objectives: [{minimize: f.y}]
storage: sqlite:///FOLDER/NAME.db
executor: serial
"""


@pytest.fixture(autouse=True)
def studies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    (tmp_path / "space.yaml").write_text(SPACE)
    for name, factor in (("first", "2"), ("second", "3")):
        text = STUDY.replace("NAME", name).replace("FACTOR", factor)
        (tmp_path / f"{name}.yaml").write_text(text.replace("FOLDER", str(tmp_path)))
    assert run("run", "first.yaml", "-q").exit_code == 0


def run(*words):
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("command", ["status", "front", "trials"])
def test_file_stands_for_the_study_in_its_storage(command):
    by_file = run(command, "first.yaml", "--format", "json")
    by_name = run(command, "first", "--storage", "sqlite:///first.db", "--format", "json")
    assert by_file.exit_code == by_name.exit_code == 0
    found, wanted = json.loads(by_file.stdout), json.loads(by_name.stdout)
    assert str(found).split("url")[0] == str(wanted).split("url")[0]
    assert run(command, "first").exit_code != 0  # it is not in the default storage


def test_named_storage_has_precedence_over_that_of_the_file():
    done = run("status", "first.yaml", "--storage", "memory://")
    assert "there is no study 'first'" in _message(done)


def test_default_storage_beside_the_file_is_named(tmp_path, monkeypatch):
    file = tmp_path / "first.yaml"
    file.write_text("".join(line for line in STUDY.splitlines(True) if "storage" not in line))
    file.write_text(file.read_text().replace("NAME", "first").replace("FACTOR", "2"))
    assert run("run", "first.yaml", "-q").exit_code == 0
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    done = run("front", "../first.yaml")
    assert "there is no storage dse.db in this folder" in _message(done)
    assert done.exception.hint == "--storage sqlite:///../dse.db"
    assert run("front", "../first.yaml", *done.exception.hint.split()).exit_code == 0


def test_files_of_a_comparison_have_one_storage():
    assert run("run", "second.yaml", "-q").exit_code == 0
    done = run("compare", "first.yaml", "second.yaml")
    assert "the study files have different storages" in _message(done)


@pytest.mark.parametrize(
    ("text", "words"),
    [("space: one\n", "is no study file"), ("study: [1\n", "bad.yaml:1: '['"), (None, "bad.yaml")],
)
def test_file_that_is_no_study_is_refused(tmp_path, text, words):
    if text is not None:
        (tmp_path / "bad.yaml").write_text(text)
    assert words in _message(run("front", "bad.yaml"))


def _message(done):
    assert done.exit_code != 0
    return str(done.exception) if isinstance(done.exception, DseError) else done.output


def test_a_file_that_is_not_there_is_named_with_the_nearest():
    found = run("front", "frist.yaml")
    assert isinstance(found.exception, DseError)
    assert str(found.exception).startswith("there is no file frist.yaml")
    assert "first.yaml" in str(found.exception)
