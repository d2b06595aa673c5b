"""``dse doctor``: what is fine, absent or broken, and how to mend it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.design import Design
from dse.services.doctor.finding import Verdict
from dse.services.doctor.packages import package_findings
from dse.services.doctor.storage_checks import storage_findings
from dse.storage.sql.database_storage import SqlStorage

runner = CliRunner()


def examined(*words: str) -> dict[str, dict[str, str]]:
    told = runner.invoke(app, ["doctor", "--format", "json", *words]).stdout
    return {one["part"]: one for one in json.loads(told)}


def test_a_sound_installation_has_nothing_broken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "broken" not in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_every_part_that_is_not_fine_says_how_to_mend_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = examined()
    assert found["compiler"]["verdict"] == found["gpu"]["verdict"] == "absent"
    assert all(one["mend"] for one in found.values() if one["verdict"] != "fine")


def test_a_storage_that_nobody_has_a_plug_in_for_is_broken():
    (found,) = storage_findings("carrier-pigeon://coop")
    assert found.verdict is Verdict.BROKEN
    assert found.mend


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/at/all/dse.db", "postgresql+psycopg://nobody@127.0.0.1:1/x"]
)
def test_a_storage_out_of_reach_is_broken_and_ends_with_one(url: str):
    result = runner.invoke(app, ["doctor", "--storage", url])
    assert result.exit_code == 1
    assert "fix:" in result.stdout


def test_a_damaged_row_is_named_with_its_study_and_ends_with_one(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    with closing(SqlStorage(url)) as storage:
        storage.create("edge", {})
        storage.add("edge", [Design({"tp": tp}) for tp in range(3)])
    with closing(sqlite3.connect(tmp_path / "dse.db")) as connection, connection:
        connection.execute("UPDATE dse_trials SET told = 1 WHERE number = 2")
    result = runner.invoke(app, ["doctor", "--storage", url])
    assert result.exit_code == 1
    assert "study 'edge': trials 2: not as written" in result.stdout
    assert f"dse studies export edge --salvage -o FILE.jsonl --storage {url}" in result.stdout


def test_a_cache_that_cannot_be_written_is_broken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "file" / "cache"))
    assert examined()["caches"]["verdict"] == "broken"


def test_a_package_that_is_too_old_is_told_with_what_is_asked_for(monkeypatch):
    monkeypatch.setattr("dse.services.doctor.packages.requires", lambda _: ["numpy>=99"])
    found = {one.part: one for one in package_findings()}
    assert found["packages"].verdict is Verdict.BROKEN
    assert "not >=99" in found["packages"].message


def test_an_extra_that_is_missing_is_absent_with_its_command(monkeypatch):
    asked = ['no-such-package>=1 ; extra == "fancy"']
    monkeypatch.setattr("dse.services.doctor.packages.requires", lambda _: asked)
    found = {one.part: one for one in package_findings()}
    assert found["fancy"].verdict is Verdict.ABSENT
    assert "[fancy]" in found["fancy"].mend
