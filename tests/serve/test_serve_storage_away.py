"""A storage that is away for a while, or is another one: said on the page, and gone on with."""

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from sqlalchemy import create_engine, text

from dse.errors import StorageError
from dse.schema.study.budget import Budget
from dse.serve.cached_value import CachedValue
from dse.serve.snapshot_cache import StorageMonitor
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine
from tests.browsing import soon

POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")


@pytest.fixture
def url(folder, tmp_path) -> str:
    """A file with a study of five trials."""
    found = f"sqlite:///{tmp_path}/kept.db"
    StudyEngine.open(folder / "toy.yaml", storage=found).run(budget=Budget(trials=5))
    return found


@pytest.fixture
def path(url) -> Path:
    return Path(url.removeprefix("sqlite:///"))


@pytest.fixture
def watch(url):
    with closing(StorageMonitor(url)) as made:
        assert len(made.snapshot("toy").trials) == 5
        yield made


def moved(path: Path, to: Path) -> None:
    for end in ("", "-wal", "-shm"):
        if Path(f"{path}{end}").exists():
            Path(f"{path}{end}").rename(f"{to}{end}")


@pytest.fixture(autouse=True)
def _eager(monkeypatch) -> None:
    monkeypatch.setattr("dse.serve.cached_value.YOUNG_S", 0.0)
    monkeypatch.setattr("dse.serve.cached_value._REST", 0.0)


def test_a_file_that_is_moved_away_is_missed_and_not_made_anew(watch, path, tmp_path) -> None:
    moved(path, tmp_path / "away.db")
    with pytest.raises(StorageError, match=r"there is no .*kept\.db any more"):
        watch.names()
    assert not path.exists()
    moved(tmp_path / "away.db", path)
    assert len(watch.snapshot("toy").trials) == 5


def test_a_file_in_the_place_of_another_is_read(watch, path, url, folder, tmp_path) -> None:
    moved(path, tmp_path / "away.db")
    StudyEngine.open(folder / "toy.yaml", storage=url).run(budget=Budget(trials=2))
    assert len(watch.snapshot("toy").trials) == 2


def test_a_study_that_was_begun_anew_with_fewer_trials_is_read_anew(watch, url, folder) -> None:
    with closing(opened_storage(url)) as storage:
        storage.delete("toy")
        StudyEngine.open(folder / "toy.yaml", storage=storage).run(budget=Budget(trials=3))
    assert len(watch.snapshot("toy").trials) == 3


def test_something_else_in_its_place_is_told(watch, path, tmp_path) -> None:
    moved(path, tmp_path / "away.db")
    path.write_text("no database " * 100)
    with pytest.raises(StorageError, match="not a database"):
        watch.names()


def test_a_file_that_another_program_locks_is_read_after_it(watch, path) -> None:
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert len(watch.snapshot("toy").trials) == 5


def test_nobody_waits_for_another_who_reads() -> None:
    look, begun, go_on = CachedValue(), threading.Event(), threading.Event()
    look.at(lambda _: "old")

    def slow(_: object) -> str:
        begun.set()
        go_on.wait(300)
        return "new"

    thread = threading.Thread(target=look.at, args=(slow,))
    thread.start()
    begun.wait(300)
    assert look.at(lambda _: "never") == "old"
    go_on.set()
    thread.join()
    assert look.value == "new"


def test_why_a_value_cannot_be_read_is_told_to_all_until_it_can() -> None:
    look = CachedValue()

    def broken(_: object) -> str:
        raise StorageError("away")

    for _ in range(2):
        with pytest.raises(StorageError, match="away"):
            look.at(broken)
    assert look.at(lambda _: "back") == "back"


def banner(driver) -> str:
    return driver.execute_script("return document.querySelector('#banner')?.textContent ?? ''")


def finished(driver) -> int:
    tile = "return document.querySelector('[data-tile=finished]')?.firstChild.textContent ?? 0"
    return int(driver.execute_script(tile))


@pytest.mark.browser
@pytest.mark.slow
def test_a_page_says_that_the_file_is_away_and_goes_on_when_it_is_back(
    chromium, url, path, local, server_at, tmp_path, quick
) -> None:
    with server_at(url, local) as address:
        chromium.get(f"{address}/studies/toy")
        soon(chromium, lambda d: d.find_elements(By.CSS_SELECTOR, "#figures .js-plotly-plot"))
        moved(path, tmp_path / "away.db")
        words = soon(chromium, banner)
        moved(tmp_path / "away.db", path)
        soon(chromium, lambda d: not banner(d))
        StudyEngine.load("toy", url).run(budget=Budget(trials=9))
        soon(chromium, lambda d: finished(d) == 9)
        chromium.get("about:blank")
    assert "any more" in words


@pytest.mark.browser
@pytest.mark.slow
def test_a_page_says_that_its_study_was_deleted_and_shows_it_when_it_is_begun_anew(
    chromium, url, local, folder, server_at, quick
) -> None:
    with server_at(url, local) as address:
        chromium.get(f"{address}/studies/toy")
        soon(chromium, lambda d: finished(d) == 5)
        soon(chromium, lambda d: d.find_elements(By.CSS_SELECTOR, "#figures .js-plotly-plot"))
        with closing(opened_storage(url)) as storage:
            storage.delete("toy")
        words = soon(chromium, banner)
        StudyEngine.open(folder / "toy.yaml", storage=url).run(budget=Budget(trials=3))
        soon(chromium, lambda d: finished(d) == 3)
        gone = banner(chromium)
        chromium.get("about:blank")
    assert (words.lower(), gone) == ("there is no study 'toy'", "")


@pytest.fixture
def postgres():
    """A schema of its own on the server that the environment names, as a URL."""
    if not POSTGRES:
        pytest.skip("PostgreSQL: DSE_TEST_POSTGRES names no database")
    server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE dse_serve"))
    yield server, server.url.set(database="dse_serve").render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE dse_serve WITH (FORCE)"))
    server.dispose()


@pytest.mark.browser
@pytest.mark.slow
def test_a_study_in_postgresql_grows_on_the_page_while_another_process_runs_it(
    chromium, postgres, folder, local, server_at
) -> None:
    server, url = postgres
    StudyEngine.open(folder / "measured.yaml", storage=url)
    words = [sys.executable, "-m", "dse", "resume", "--quiet", "--storage", url]
    with server_at(url, local) as address:
        chromium.get(f"{address}/studies/measured")
        with subprocess.Popen([*words, "--measurements", "25", "measured"]) as process:
            first = soon(chromium, finished)
            grown = soon(chromium, lambda d: finished(d) > first and finished(d))
            process.wait(300)
        soon(chromium, lambda d: finished(d) == 25)
        with server.connect() as connection:  # as if the server had been restarted
            every = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
            connection.execute(text(every), {"name": "dse_serve"})
        StudyEngine.load("measured", url).run(budget=Budget(measurements=27))
        soon(chromium, lambda d: finished(d) >= 27)
        soon(chromium, lambda d: not banner(d))
        chromium.get("about:blank")
    assert 0 < first < grown
