"""What SQLite files may look like when they are opened, and what is said where they cannot be."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.errors import StorageError
from dse.storage.sql.database_storage import SqlStorage
from dse.storage.sql.migrations import LATEST

DESIGNS = [Design({"tp": tp, "name": f"a design that takes some room {tp}"}) for tp in range(2000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture
def full(path: Path) -> Path:
    storage = SqlStorage(f"sqlite:///{path}")
    storage.create("edge", {"seed": 7})
    storage.add("edge", DESIGNS)
    storage.finish("edge", {0: Outcome(state=State.DONE, metrics={"energy": 1.5})})
    storage.close()
    return path


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def refusal(url: str) -> StorageError:
    with pytest.raises(StorageError) as caught:
        SqlStorage(url)
    return caught.value


def test_a_closed_storage_is_one_file(full: Path) -> None:
    assert [file.name for file in full.parent.iterdir()] == ["study.db"]


def test_a_relative_url_is_a_file_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    SqlStorage("sqlite:///here.db").close()
    assert (tmp_path / "here.db").is_file()


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("busy_timeout", 30_000),
        ("trusted_schema", 0),
        ("cell_size_check", 1),
    ],
)
def test_a_connection_waits_for_others_and_for_the_disk_and_trusts_no_file(
    path: Path, pragma: str, value: object
) -> None:
    storage = SqlStorage(f"sqlite:///{path}")
    with storage._database.reading() as connection:
        assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() == value
    storage.close()


def test_what_is_stored_is_plain_json(full: Path) -> None:
    with closing(sqlite3.connect(full)) as connection:
        row = connection.execute(
            "SELECT design, key, state, metrics, fault FROM dse_trials WHERE number = 0"
        ).fetchone()
    assert row == (
        '{"name":"a design that takes some room 0","tp":0}',
        DESIGNS[0].key,
        "done",
        '{"energy":1.5}',
        None,
    )


def test_trials_are_read_while_another_process_writes(full: Path) -> None:
    storage = SqlStorage(f"sqlite:///{full}")
    with closing(sqlite3.connect(full, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM dse_trials")
        assert len(storage.trials("edge")) == len(DESIGNS)
    storage.close()


def test_a_folder_that_is_missing_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    error = refusal(f"sqlite:///{tmp_path}/gone/study.db")
    assert f"there is no folder {tmp_path}/gone" in error.problem
    assert error.hint == f"make it: mkdir -p {tmp_path}/gone"


def test_a_folder_that_takes_no_files_is_refused_with_a_hint() -> None:
    assert "may write" in refusal("sqlite:////proc/study.db").hint


def test_a_folder_in_place_of_a_file_is_refused_with_a_hint(tmp_path: Path) -> None:
    error = refusal(f"sqlite:///{tmp_path}")
    assert error.where == str(tmp_path)
    assert "check that it is a file" in error.hint


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("a long letter to somebody else\n" * 100)
    error = refusal(f"sqlite:///{path}")
    assert "not a database" in error.problem
    assert error.where == str(path)
    assert error.hint
    assert path.read_text() == "a long letter to somebody else\n" * 100


def test_a_database_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    changed(path, "CREATE TABLE songs (title TEXT)")
    before = path.read_bytes()
    assert "it contains 'songs'" in refusal(f"sqlite:///{path}").problem
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("songs",)]
    assert len(path.read_bytes()) == len(before)


def test_a_database_that_was_cut_is_refused_with_a_hint(full: Path) -> None:
    content = full.read_bytes()
    full.write_bytes(content[: len(content) // 2 // 4096 * 4096])
    with pytest.raises(StorageError, match="malformed") as caught:
        SqlStorage(f"sqlite:///{full}").trials("edge")
    assert "damaged" in caught.value.hint


@pytest.mark.parametrize(
    "damage",
    [
        "SET design = '{\"tp\":'",
        "SET design = '7'",
        "SET state = 'dreaming'",
        "SET metrics = X'FFFE'",
        "SET fault = '{\"colour\": 3}'",
    ],
)
def test_a_trial_that_was_damaged_is_named(full: Path, damage: str) -> None:
    changed(full, f"UPDATE dse_trials {damage} WHERE number = 1234")
    storage = SqlStorage(f"sqlite:///{full}")
    with pytest.raises(StorageError, match="trial 1234 is damaged"):
        storage.trials("edge")
    storage.close()


def test_a_database_from_the_future_is_refused_with_a_hint(full: Path) -> None:
    changed(full, "UPDATE dse_meta SET version = version + 1")
    error = refusal(f"sqlite:///{full}")
    assert f"version {LATEST + 1}" in error.problem
    assert "upgrade" in error.hint


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("study.db", "no URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://localhost/dse", "mysql is no storage"),
    ],
)
def test_a_url_that_names_no_storage_is_refused_with_the_forms_that_do(
    url: str, problem: str
) -> None:
    error = refusal(url)
    assert problem in error.problem
    assert "sqlite:///relative.db" in error.hint


def test_a_server_that_does_not_answer_is_told_without_its_password() -> None:
    error = refusal("postgresql://me:secret@127.0.0.1:1/dse")
    assert "secret" not in str(error)
    assert error.hint


def test_a_value_that_json_has_no_word_for_is_refused(path: Path) -> None:
    storage = SqlStorage(f"sqlite:///{path}")
    with pytest.raises(StorageError, match="cannot be stored as JSON"):
        storage.create("edge", {"limit": float("inf")})
    assert storage.studies() == []
    storage.close()
