"""``dse trials`` and the CSV of an export, written in parts: byte by byte as row by row before."""

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.study.study_engine import StudyEngine
from tests.report.row_writer import csv_by_rows, json_by_rows

STUDIES = ("odd", "hopeless", "formulas", "factorial", "ladder", "empty")


@pytest.fixture(params=STUDIES)
def study(folder, request) -> StudyEngine:
    return StudyEngine.load(request.param)


def told(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_table_on_the_terminal_has_the_bytes_that_it_had(study) -> None:
    before = csv_by_rows(study.problem, study.trials)
    assert told("trials", study.name, "--format", "csv") == before


def test_a_table_in_a_file_has_the_bytes_that_it_had(study) -> None:
    before = csv_by_rows(study.problem, study.trials)
    told("trials", study.name, "-o", "trials.csv")
    told("studies", "export", study.name, "-o", "exported.csv")
    assert Path("trials.csv").read_bytes().decode() == before
    assert Path("exported.csv").read_bytes().decode() == before


def test_json_has_the_bytes_that_it_had(study) -> None:
    before = json_by_rows(study.name, study.problem, study.trials, indent=2) + "\n"
    assert told("trials", study.name, "--format", "json") == before
    told("trials", study.name, "-o", "trials.json")
    assert Path("trials.json").read_bytes().decode() == before


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE dse_trials SET cost_s = 7 WHERE number = 2",
        "UPDATE dse_trials SET spread = '[1' WHERE number = 0",
        "DELETE FROM dse_trials WHERE number = 2",
        "UPDATE dse_trials SET number = 99 WHERE number = 2",
    ],
)
@pytest.mark.parametrize("file", ["trials.csv", "trials.json"])
def test_a_study_that_is_damaged_leaves_no_part_of_a_file(folder, damage, file) -> None:
    with sqlite3.connect("dse.db") as database:
        database.execute(f"{damage} AND study = (SELECT id FROM dse_studies WHERE name = 'odd')")
    done = CliRunner().invoke(app, ["trials", "odd", "-o", file])
    assert "the disk or another program changed it" in str(done.exception)
    assert not [*folder.glob(f"*{file}*"), *folder.glob(f".{file}*")]
