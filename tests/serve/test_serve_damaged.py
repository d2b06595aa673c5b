"""A damaged study in the live view: the list works, and the study's page says how to salvage it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dse.serve.access import AccessRules
from dse.serve.server import application
from dse.storage.sql.database_storage import SqlStorage
from dse.study.study_engine import StudyEngine

DAMAGES = {
    "trial": ("UPDATE dse_trials SET told = 7 WHERE study = 1 AND number = 3", "toy 6"),
    "question": ("UPDATE dse_studies SET spec = '{' WHERE id = 1", "toy 6"),
    "counts": ("UPDATE dse_studies SET trials = 3 WHERE id = 1", "toy 6"),
    "driver": ("UPDATE dse_drivers SET pid = 3 WHERE study = 1", "toy 6"),
    "name": ("UPDATE dse_studies SET name = X'FF' WHERE id = 1", "#1"),
}


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database of two studies that ran."""
    file = tmp_path_factory.mktemp("whole") / "dse.db"
    with closing(SqlStorage(f"sqlite:///{file}")) as storage:
        for seed in (5, 6):
            StudyEngine.open(
                folder / "toy.yaml", name=f"toy {seed}", storage=storage, seed=seed
            ).run()
    return file.read_bytes()


@pytest.fixture(params=DAMAGES)
def client(
    request: pytest.FixtureRequest, whole: bytes, tmp_path: Path, local: AccessRules
) -> Iterator[tuple[TestClient, str]]:
    """The live view of a database whose second study is damaged, and what that one is called."""
    statement, name = DAMAGES[request.param]
    file = tmp_path / "dse.db"
    file.write_bytes(whole)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)
    app = application(f"sqlite:///{file}", local)
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as made:
        yield made, name


def test_the_list_shows_the_others_and_what_is_damaged(client: tuple[TestClient, str]) -> None:
    view, name = client
    page = view.get("/")
    assert page.status_code == 200
    assert page.text.count("Which &lt;b&gt;toy") == 1
    rows = {row["name"]: row for row in view.get("/api/studies").json()["studies"]}
    assert rows["toy 5"]["problem"] == ""
    assert rows[name]["state"] == "unreadable"
    assert f"study '{name}': " in rows[name]["problem"]


def test_the_page_of_the_study_says_how_to_salvage_it(client: tuple[TestClient, str]) -> None:
    view, name = client
    page = view.get(f"/studies/{name.replace('#', '%23').replace(' ', '%20')}")
    assert page.status_code == 503
    assert "dse studies export" in page.text
    assert "--salvage" in page.text
    assert "damaged" in page.text
    assert view.get("/studies/toy%205").status_code == 200
