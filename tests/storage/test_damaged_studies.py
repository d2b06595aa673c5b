"""One damaged study: the others are listed, read and deleted as before, and its errors name it."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.metric import Failure
from dse.core.trial import Ask, Driver, Event, Outcome, Report, State
from dse.errors import DseError, StorageError, StudyError
from dse.interop.archive import archive as portable
from dse.interop.archive.salvage import open_salvage
from dse.services.doctor.finding import Verdict
from dse.services.doctor.storage_checks import storage_findings
from dse.storage.sql.database_storage import SqlStorage
from dse.storage.sql.tables import metadata
from dse.study.study_engine import StudyEngine

SPACE = """
space: toy
parameters: {a: {integer: [1, 64]}, mode: {choice: [slow, fast]}}
"""

STUDY = """
study: bad
question: Which toy is best?
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / a}, area: {formula: a + 3}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
optimizer: random
budget: {trials: 6}
seed: 5
unread: [mode]
"""

CRASHED = Outcome(
    state=State.FAILED, failure=Failure(kind="crashed", reason="status 1"), cost_s=0.25
)
Record = tuple[object, ...] | StorageError
VALUES = ("X'FFFE'", "12345")
COLUMNS = [(table.name, column.name) for table in metadata.sorted_tables for column in table.c]
GLOBAL = {"dse_meta"}
"""Tables of which one row is of all studies."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with three studies; of the middle one every table has rows."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(STUDY)
    with closing(SqlStorage(f"sqlite:///{folder}/dse.db")) as storage:
        for name in ("first", "bad", "last"):
            StudyEngine.open(folder / "study.yaml", name=name, storage=storage).run()
        driver = storage.enter("bad", Driver(host="here", pid=7, started="1"))
        design = storage.trials("bad")[0].design
        (new,) = storage.add("bad", [design], Ask(worker=driver, by="random", told=6))
        storage.report("bad", [Report(number=new.number, step=1, metrics={"chip.time": 0.5})])
        storage.retry("bad", {new.number: CRASHED})
        storage.record("bad", [Event(kind="note", text="one more")])
    with closing(sqlite3.connect(folder / "dse.db")) as connection, connection:
        connection.execute("INSERT INTO dse_pages VALUES (1, 0, X'00', 7)")
    return folder / "dse.db"


@pytest.fixture(scope="module")
def records(whole: Path) -> dict[str, Record]:
    """What the database holds of each study."""
    with closing(SqlStorage(f"sqlite:///{whole}")) as storage:
        return {name: read(storage, name) for name in storage.studies()}


@pytest.fixture
def file(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path))


def change(file: Path, *statements: str) -> str:
    """Change the file as another program would; its URL is returned."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return f"sqlite:///{file}"


def dse(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, DseError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def read(storage: SqlStorage, name: str) -> Record:
    """All that the storage keeps of a study, or the error of reading it."""
    try:
        return (
            storage.spec(name),
            list(storage.trials(name)),
            storage.finished_order(name),
            storage.asks(name),
            storage.attempts(name),
            storage.events(name),
            storage.reports(name),
            storage.drivers(name),
        )
    except StorageError as error:
        return error


def names(found: Record, study: str) -> bool:
    """True if what was read is an error that names the study and the way to salvage it."""
    return (
        isinstance(found, StorageError)
        and found.problem.startswith(f"study {study!r}: ")
        and f"dse studies export {shlex.quote(study)} --salvage" in found.hint
    )


def count_sound(storage: SqlStorage, name: str, whole: Record, folder: Path) -> int:
    """How many trials a salvage keeps; each is one of the whole study."""
    with open_salvage(storage, name, {"seed": 7}) as found:
        portable.write(found, folder / "sound.jsonl")
    kept = portable.read_archive(folder / "sound.jsonl")
    assert isinstance(whole, tuple)
    known = [(trial.design, trial.outcome) for trial in whole[1]]
    return sum((trial.design, trial.outcome) in known for trial in kept.trials)


def damages() -> Iterator[object]:
    """Each column of each table that a study has rows of, with each odd value in one row."""
    for table, column in COLUMNS:
        if table not in GLOBAL:
            for value in VALUES:
                where = "id = 1" if table == "dse_studies" else "study = 1"
                some = f"rowid IN (SELECT max(rowid) FROM {table} WHERE {where})"
                statement = f'UPDATE OR IGNORE {table} SET "{column}" = {value} WHERE {some}'
                yield pytest.param(statement, id=f"{table}.{column}={value}")


@pytest.mark.parametrize("statement", list(damages()))
def test_a_damaged_column_is_named_and_other_studies_stay(
    file: Path, records: dict[str, Record], statement: str
) -> None:
    with closing(SqlStorage(change(file, statement))) as storage:
        found = {name: read(storage, name) for name in storage.studies()}
        assert [one.study for one in storage.summaries()] == list(found)
        assert [found["first"], found["last"]] == [records["first"], records["last"]]
        (other,) = [name for name in found if name not in ("first", "last")]
        assert found[other] == records["bad"] or names(found[other], other)
        lost = 7 if 'dse_studies SET "id"' in statement else 1  # rows of no study
        assert count_sound(storage, other, records["bad"], file.parent) >= 7 - lost
        storage.delete(other)
        assert storage.studies() == ["first", "last"]


@pytest.mark.parametrize(
    ("statement", "name", "trials", "problem"),
    [
        ("UPDATE dse_studies SET spec = '{' WHERE id = 1", "bad", 7, "question is damaged"),
        ("UPDATE dse_studies SET trials = 3 WHERE id = 1", "bad", None, "counts of rows"),
        ("UPDATE dse_studies SET name = X'FF' WHERE id = 1", "#1", None, "question is damaged"),
        ("UPDATE dse_studies SET name = 'odd' WHERE id = 1", "odd", None, "question is damaged"),
    ],
)
def test_a_damaged_study_is_listed_with_its_problem(
    file: Path, statement: str, name: str, trials: int | None, problem: str
) -> None:
    url = change(file, statement)
    rows = json.loads(dse("studies", "list", "--storage", url, "--format", "json"))
    assert [row["study"] for row in rows] == ["first", name, "last"]
    assert [row["problem"] for row in rows[::2]] == ["", ""]
    assert problem in rows[1]["problem"]
    assert rows[1]["trials"] == trials
    lines = dse("studies", "list", "--storage", url).splitlines()
    assert any(name in line and problem in line for line in lines)


def test_status_of_all_studies_ends_with_the_errors_of_the_damaged_ones(file: Path) -> None:
    url = change(file, "UPDATE dse_trials SET told = 3 WHERE study = 1 AND number = 4")
    result = CliRunner().invoke(app, ["status", "--storage", url])
    assert "first: Which toy" in result.stdout
    assert "last: Which toy" in result.stdout
    assert "study 'bad': trial 4 is damaged" in str(result.exception)
    assert "dse studies export bad --salvage" in str(result.exception)


def test_a_damaged_study_is_deleted_by_the_command(file: Path) -> None:
    url = change(file, "UPDATE dse_studies SET counted = 3, sum = 4 WHERE id = 1")
    told = json.loads(
        dse("studies", "delete", "bad", "--yes", "--storage", url, "--format", "json")
    )
    assert told == {"study": "bad", "trials": None}
    with closing(SqlStorage(url)) as storage:
        assert storage.studies() == ["first", "last"]


def test_a_list_of_many_trials_counts_them_and_reads_none(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = change(file, "DROP TABLE dse_trials")
    monkeypatch.setattr("dse.services.studies.study_list.MOST_CHECKED", 10)
    rows = json.loads(dse("studies", "list", "--storage", url, "--format", "json"))
    counts = [(row["trials"], row["finished"], row["problem"]) for row in rows]
    assert counts == [(6, 6, ""), (7, 6, ""), (6, 6, "")]


def test_a_list_of_few_trials_checks_them(file: Path) -> None:
    url = change(file, "UPDATE dse_trials SET told = 3 WHERE study = 1 AND number > 4")
    rows = json.loads(dse("studies", "list", "--storage", url, "--format", "json"))
    problem = "pages 0: copies of sound rows; the rows are read instead; trials 5-6: not as written"
    assert [row["problem"][:84] for row in rows] == ["", problem, ""]


@pytest.mark.parametrize(
    ("statement", "study", "told"),
    [
        (
            "UPDATE dse_trials SET told = 3 WHERE study = 1 AND number IN (2, 4, 5)",
            "bad",
            "study 'bad': trials 2, 4-5: not as written",
        ),
        ("DELETE FROM dse_asks WHERE study = 2", "last", "study 'last': asks 0: missing"),
        ("UPDATE dse_trials SET key = 'odd' WHERE study = 2 AND number = 3", "last", "the key is"),
        ("UPDATE dse_studies SET asks = 9 WHERE id = 2", "last", "counts of rows are damaged"),
        ("UPDATE dse_studies SET spec = '{}' WHERE id = 2", "last", "its question is damaged"),
        ("DELETE FROM dse_studies WHERE id = 2", "", "rows of dse_trials belong to no study"),
        (
            "ALTER TABLE dse_reports DROP COLUMN step",
            "",
            "the column step of dse_reports is missing",
        ),
        ("DROP TABLE dse_reports", "", "the table dse_reports is missing"),
        ("INSERT INTO dse_events VALUES (2, 77, 'a', 'b', 0, 0)", "last", "1 rows that were never"),
    ],
)
def test_doctor_names_each_damage(file: Path, statement: str, study: str, told: str) -> None:
    url = change(file, "DELETE FROM dse_pages", statement)
    broken = [one for one in storage_findings(url) if one.verdict is Verdict.BROKEN]
    assert any(one.study == study and told in one.message and one.mend for one in broken)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dse_meta SET version = 'x'",
        "UPDATE dse_meta SET version = -1",
        "DELETE FROM dse_meta",
        "INSERT INTO dse_meta VALUES (2)",
        "DROP TABLE dse_meta",
    ],
)
def test_a_damaged_version_is_named_with_what_mends_it(file: Path, statement: str) -> None:
    url = change(file, statement)
    with pytest.raises(StorageError, match=r"dse_meta is missing|version of") as caught:
        SqlStorage(url)
    change(file, *caught.value.hint.partition("in a copy of it: ")[2].split("; "))
    with closing(SqlStorage(url)) as storage:
        assert storage.studies() == ["first", "bad", "last"]


def test_doctor_counts_the_rows_that_are_sound(file: Path) -> None:
    url = change(file, "DELETE FROM dse_pages")
    counts = list[tuple[int, int]]()
    found = list(storage_findings(url, lambda done, total: counts.append((done, total))))
    assert [one.verdict for one in found] == [Verdict.FINE] * 3
    (sums,) = [one for one in found if one.part == "check sums"]
    assert sums.message == f"all {counts[-1][1]} rows are as they were written"
    assert counts[-1][0] == counts[-1][1]


def test_a_record_that_is_sound_and_says_nothing_is_an_error_of_its_study(file: Path) -> None:
    url = f"sqlite:///{file}"
    with closing(SqlStorage(url)) as storage:
        storage.create("odd", {"path": "nowhere"})
    with pytest.raises(StudyError, match="study 'odd': its record does not say what was asked"):
        dse("status", "odd", "--storage", url)
    study = file.with_name("study.yaml")
    study.write_text(STUDY)
    study.with_name("space.yaml").write_text(SPACE)
    with pytest.raises(StudyError, match="study 'odd': its record does not say what was asked"):
        dse("run", str(study), "--name", "odd", "--storage", url)
