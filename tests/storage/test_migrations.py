"""The steps from an empty database to the present one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import inspect

from dse.errors import StorageError
from dse.storage.sql.database import Database
from dse.storage.sql.migrations import LATEST, STEPS, migrate, version
from dse.storage.sql.tables import metadata

HALF = ("CREATE TABLE dse_more (id BIGINT)", "UPDATE nowhere SET x = 1")
WHOLE = ("ALTER TABLE dse_studies ADD COLUMN owner TEXT",)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.close()


def test_a_new_database_has_the_latest_version(database: Database) -> None:
    with database.reading() as connection:
        assert version(connection) == LATEST


def test_no_step_is_taken_twice(database: Database) -> None:
    with database.writing() as connection:
        migrate(connection)
    with database.reading() as connection:
        assert version(connection) == LATEST


def test_the_steps_make_the_tables_that_the_queries_speak_of(database: Database) -> None:
    with database.reading() as connection:
        found = inspect(connection)
        made = {
            name: {c["name"]: c["type"].python_type for c in found.get_columns(name)}
            for name in found.get_table_names()
        }
    assert made == {
        table.name: {c.name: c.type.python_type for c in table.columns}
        for table in metadata.sorted_tables
    }


def test_an_older_database_is_brought_up_and_keeps_what_it_holds(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO dse_studies (id, name, spec) VALUES (0, 'edge', '{}')"
        )
    monkeypatch.setattr("dse.storage.sql.migrations.STEPS", (*STEPS, WHOLE))
    monkeypatch.setattr("dse.storage.sql.migrations.LATEST", LATEST + 1)
    monkeypatch.setattr("dse.storage.sql.database.LATEST", LATEST + 1)
    newer = Database(url)
    with newer.reading() as connection:
        assert version(connection) == LATEST + 1
        row = connection.exec_driver_sql("SELECT name, owner FROM dse_studies").one()
    newer.close()
    assert tuple(row) == ("edge", None)


def test_a_step_that_fails_leaves_no_trace(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dse.storage.sql.migrations.STEPS", (*STEPS, HALF))
    with pytest.raises(StorageError, match="nowhere"), database.writing() as connection:
        migrate(connection)
    with database.reading() as connection:
        assert version(connection) == LATEST
        assert not inspect(connection).has_table("dse_more")
