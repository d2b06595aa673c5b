"""What is sound of a damaged study is written, imported again, gone on with, and told apart."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.metric import Failure
from dse.core.preference_answers import read_answers
from dse.core.trial import Driver, Outcome, Report, State
from dse.errors import DseError, StorageError, StudyError
from dse.interop.archive.salvage import ranges, ranges_text
from dse.schema.study.budget import Budget
from dse.services.doctor.finding import Verdict
from dse.services.doctor.storage_checks import storage_findings
from dse.services.studies.recorded_preferences import record_preference, withdraw_answers
from dse.storage.sql.database_storage import SqlStorage
from dse.study.study_engine import StudyEngine
from tests.postgresql_servers import needs_postgres, new_schema

SPACE = "{space: toy, parameters: {a: {integer: [1, 64]}, mode: {choice: [slow, fast]}}}"

STUDY = """
study: bad
question: Which toy is best?
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / a}, area: {formula: a + 3}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
optimizer: random
budget: {trials: 40}
seed: 5
unread: [mode]
"""

LOST = Outcome(state=State.FAILED, failure=Failure(kind="crashed", reason="status 1"), cost_s=0.25)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of forty finished trials that were asked in four runs, and one that waits."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(STUDY)
    with closing(SqlStorage(f"sqlite:///{folder}/dse.db")) as storage:
        study = StudyEngine.open(folder / "study.yaml", storage=storage)
        for trials in (10, 20, 30, 40):
            study.run(budget=Budget(trials=trials))
        (new,) = storage.add("bad", [storage.trials("bad")[0].design])
        storage.enter("bad", Driver(host="here", pid=7))
        storage.retry("bad", {new.number: LOST})
        storage.retry("bad", {new.number: LOST})
        storage.report("bad", [Report(number=40, attempt=2, step=1, metrics={"chip.time": 0.5})])
    return folder / "dse.db"


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the study, which commands take for their own."""
    shutil.copytree(whole.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    return tmp_path


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "dse.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def dse(*words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*words, "--format", "json"])
    if isinstance(result.exception, DseError):
        raise result.exception
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def salvage(*words: str) -> Any:
    """Salvage the study and import what came out as ``again``."""
    told = dse("studies", "export", "bad", "--salvage", "-o", "sound.jsonl", *words)
    dse("studies", "import", "sound.jsonl", "--name", "again")
    return told


def designs(name: str) -> list[Any]:
    return [trial["design"] for trial in dse("trials", name)["trials"]]


def test_sound_trials_keep_their_order_and_what_was_left_out_is_told(folder: Path) -> None:
    before = dse("trials", "bad")["trials"]
    change(folder, "UPDATE dse_trials SET metrics = '{}' WHERE number = 25")
    change(folder, "DELETE FROM dse_trials WHERE number IN (7, 8, 9)")
    told = salvage()
    assert (told["trials"], told["left_out"]) == (
        37,
        [
            {"part": "trials", "rows": [[7, 9]], "reason": "missing"},
            {
                "part": "trials",
                "rows": [[25, 25]],
                "reason": "not as written: the check sum differs",
            },
        ],
    )
    sound = [trial for trial in before if trial["trial"] not in (7, 8, 9, 25)]
    after = dse("trials", "again")["trials"]
    assert [trial["trial"] for trial in after] == list(range(37))
    assert [(t["design"], t["metrics"]) for t in after] == [
        (t["design"], t["metrics"]) for t in sound
    ]


def test_answers_on_pairs_of_trials_stay_with_their_designs(folder: Path) -> None:
    before = designs("bad")
    with closing(SqlStorage(f"sqlite:///{folder}/dse.db")) as storage:
        study = StudyEngine.load("bad", storage)
        for better, other in ((1, 8), (20, 2), (3, 30)):
            record_preference(study, better, other)
        withdraw_answers(study, [2])
    change(folder, "DELETE FROM dse_trials WHERE number IN (7, 8, 9)")
    salvage()
    with closing(SqlStorage(f"sqlite:///{folder}/dse.db")) as storage:
        kept = read_answers(storage.events("again"))
    after = designs("again")
    assert [(after[a.first], after[a.second]) for a in kept] == [(before[3], before[30])]


def test_a_salvaged_study_says_so_and_what_it_lost(folder: Path) -> None:
    change(folder, "DELETE FROM dse_trials WHERE number = 25")
    salvage()
    event = dse("status", "again")["events"][-1]
    text = "1 of 41 trials were left out of a damaged study (trials 25: missing)"
    assert (event["kind"], event["text"]) == ("salvaged", text)
    lines = CliRunner().invoke(app, ["studies", "export", "bad", "--salvage", "-o", "s.jsonl"])
    assert "left out: trials 25: missing" in lines.stderr


def test_what_was_asked_before_the_damage_is_proved_and_the_rest_is_not(folder: Path) -> None:
    change(folder, "DELETE FROM dse_trials WHERE number = 25")
    salvage()
    proof = dse("verify", "again", code=1)
    assert (proof["proved"], proof["mismatch"]) == (False, None)
    assert (proof["trials"], proof["salvaged"], proof["unknown"]) == (20, 20, 0)
    said = CliRunner().invoke(app, ["verify", "again"]).stdout
    assert "not proved: 20 trials of a salvaged study" in said


def test_what_is_asked_after_the_salvage_is_proved_again(folder: Path) -> None:
    change(folder, "DELETE FROM dse_trials WHERE number = 25")
    salvage()
    dse("resume", "again", "--trials", "50", "--trust")
    assert len(designs("again")) == 50
    proof = dse("verify", "again", code=1)
    assert proof["mismatch"] is None
    assert (proof["trials"], proof["salvaged"]) == (30, 20)


def test_a_sound_study_is_exported_as_without_salvage(folder: Path) -> None:
    sound = dse("studies", "export", "bad", "-o", "sound.jsonl")
    assert dse("studies", "export", "bad", "--salvage", "-o", "salvaged.jsonl") == {
        **sound,
        "to": "salvaged.jsonl",
    }


def test_a_salvaged_study_in_either_form_is_one(folder: Path) -> None:
    change(folder, "UPDATE dse_trials SET told = 3 WHERE number = 25")
    lines = dse("studies", "export", "bad", "--salvage", "-o", "sound.jsonl")
    table = dse("studies", "export", "bad", "--salvage", "-o", "sound.parquet")
    assert lines["sha256"] == table["sha256"]
    dse("studies", "import", "sound.parquet", "--name", "again")


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("UPDATE dse_asks SET count = 3 WHERE seq = 1", "asks"),
        ("UPDATE dse_attempts SET cost_s = 9 WHERE seq = 0", "attempts"),
        ("DELETE FROM dse_attempts", "attempts"),
        ("UPDATE dse_drivers SET pid = 3 WHERE seq = 0", "drivers"),
        ("UPDATE dse_reports SET step = 9", "reports"),
        ("UPDATE dse_studies SET trials = 3", "study"),
        ("UPDATE dse_studies SET counted = NULL", "study"),
        ("DROP TABLE dse_reports", "reports"),
    ],
)
def test_damage_of_any_part_leaves_the_others(folder: Path, statement: str, part: str) -> None:
    change(folder, statement)
    told = salvage()
    assert [one["part"] for one in told["left_out"]] == [part]
    assert len(designs("again")) == told["trials"] >= 40
    assert dse("verify", "again", code=1)["mismatch"] is None


def test_a_damaged_question_is_taken_from_the_study_file(folder: Path) -> None:
    change(folder, "UPDATE dse_studies SET spec = replace(spec, 'best', 'worst')")
    with pytest.raises(StorageError, match="its question is damaged") as caught:
        salvage()
    assert "--study STUDY.yaml" in caught.value.hint
    assert salvage("--study", "study.yaml")["trials"] == 41
    assert dse("front", "again")["front"]


def test_a_study_file_of_other_designs_is_refused(folder: Path) -> None:
    change(folder, "UPDATE dse_studies SET spec = '{' ")
    (folder / "space.yaml").write_text(SPACE.replace("64", "8"))
    with pytest.raises(StudyError, match="not a design of the space of"):
        salvage("--study", "study.yaml")


def test_a_study_whose_name_is_damaged_is_salvaged_by_its_number(folder: Path) -> None:
    change(folder, "UPDATE dse_studies SET name = X'FF'")
    words = ("--salvage", "-o", "sound.jsonl", "--study", "study.yaml", "--name", "bad")
    assert dse("studies", "export", "#0", *words)["trials"] == 41
    dse("studies", "import", "sound.jsonl")
    assert len(designs("bad")) == 41


def test_a_page_of_zeros_costs_what_was_on_it(folder: Path) -> None:
    file = folder / "dse.db"
    with closing(SqlStorage(f"sqlite:///{file}")) as storage:
        StudyEngine.open(folder / "study.yaml", name="other", storage=storage).run()
        other = list(storage.trials("other"))
    with closing(sqlite3.connect(file)) as connection:
        wanted = "SELECT pageno FROM dbstat WHERE name = 'dse_trials' AND pagetype = 'leaf'"
        page = connection.execute(wanted).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = bytes(size)
    file.write_bytes(content)
    told = dse("studies", "export", "bad", "--salvage", "-o", "sound.jsonl")
    assert 0 < told["trials"] < 41
    dse("studies", "import", "sound.jsonl", "--storage", "sqlite:///new.db")
    with closing(SqlStorage(f"sqlite:///{file}")) as storage:
        assert list(storage.trials("other")) == other


def test_a_file_that_was_cut_short_is_salvaged_from_a_copy_as_long_again(folder: Path) -> None:
    file = folder / "dse.db"
    content = file.read_bytes()
    kept = content[:-4096]
    file.write_bytes(kept)
    with pytest.raises(StorageError, match="malformed"):
        dse("studies", "export", "bad", "--salvage", "-o", "sound.jsonl")
    file.write_bytes(kept.ljust(len(content), b"\0"))
    told = dse("studies", "export", "bad", "--salvage", "-o", "sound.jsonl")
    assert 0 < told["trials"] < 41
    dse("studies", "import", "sound.jsonl", "--storage", "sqlite:///new.db")


@pytest.mark.parametrize(
    ("rows", "text"),
    [([], ""), ([4], "4"), ([4, 7, 8, 9], "4, 7-9"), ([3, 1, 2, 9], "1-3, 9")],
)
def test_numbers_are_told_in_runs(rows: list[int], text: str) -> None:
    assert ranges_text(rows) == text
    assert sum(last - first + 1 for first, last in ranges(rows)) == len(rows)


@needs_postgres
@pytest.mark.parametrize(
    ("statement", "left", "told"),
    [
        ("UPDATE dse_trials SET told = 9 WHERE number = 3", 40, "trials 3: not as written"),
        ("DELETE FROM dse_trials WHERE number > 30", 31, "trials 31-40: missing"),
        ("DELETE FROM dse_asks WHERE seq = 0", 41, "asks 0: missing"),
        ("ALTER TABLE dse_reports DROP COLUMN step", 41, "reports 0: missing"),
        ("UPDATE dse_studies SET counted = 3", 41, "its counts of rows are damaged"),
    ],
)
def test_damage_in_postgresql_is_salvaged_and_named(
    folder: Path, statement: str, left: int, told: str
) -> None:
    dse("studies", "export", "bad", "-o", "whole.jsonl")
    with new_schema() as url:
        dse("studies", "import", "whole.jsonl", "--storage", url)
        server = create_engine(url)
        with server.begin() as connection:
            connection.exec_driver_sql(statement)
        server.dispose()
        words = ("--salvage", "-o", "sound.jsonl", "--storage", url)
        assert dse("studies", "export", "bad", *words)["trials"] == left
        found = [one.message for one in storage_findings(url) if one.verdict is Verdict.BROKEN]
        assert any(told in one for one in found)
        rows = dse("studies", "list", "--storage", url)
        assert told in rows[0]["problem"]
