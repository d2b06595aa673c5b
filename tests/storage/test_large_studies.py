"""Studies of so many trials that they are read by the page."""

from __future__ import annotations

import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Damage, History, Outcome, State, Trial
from dse.errors import StorageError
from dse.storage.sql.database_storage import SqlStorage
from dse.storage.sql.trial_pages import PAGE

MANY = 25_000
"""Six whole pages and some more."""

TINY = 5e-324


class Program:
    """What makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


def outcome(number: int) -> Outcome:
    if number % 7 == 0:
        failure = Failure(kind="crashed", reason=f"status {number % 3}")
        return Outcome(state=State.FAILED, failure=failure, cost_s=0.1 * number)
    spread = {"q.accuracy": 1e-3} if number > 15_000 else {}
    metrics = {"q.accuracy": number * 0.1, "chip.energy": -TINY * number}
    late = {"só \udcff": 1 / number} if number == 12_345 else {}
    return Outcome(
        state=State.DONE,
        metrics={**metrics, **late},
        spread=spread,
        measured=1,
        begun_at=number + 0.5,
        finished_at=number + 1.5,
    )


def trial(number: int) -> Trial:
    asked = Trial(number=number, design=Design({"tp": number, "format": "int8"}), told=number // 2)
    return asked if number % 1000 == 999 else asked.finished(outcome(number))


TRIALS = [trial(number) for number in range(MANY)]
ORDER = [one.number for one in reversed(TRIALS) if one.state.finished]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("large") / "study.db"
    with closing(SqlStorage(f"sqlite:///{file}")) as storage:
        storage.create("large", {}, History(trials=TRIALS, order=ORDER))
    return file


@pytest.fixture(scope="module")
def storage(file: Path) -> Iterator[SqlStorage]:
    with closing(SqlStorage(f"sqlite:///{file}")) as storage:
        yield storage


@pytest.fixture
def copy(file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(file, tmp_path))


def changed(file: Path, *statements: str) -> SqlStorage:
    """The study after another program changed its file."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return SqlStorage(f"sqlite:///{file}")


def pages_of(file: Path) -> list[int]:
    with closing(sqlite3.connect(file)) as connection:
        return [seq for (seq,) in connection.execute("SELECT seq FROM dse_pages ORDER BY seq")]


@pytest.mark.slow
def test_every_number_is_read_as_it_was_written(storage: SqlStorage) -> None:
    assert storage.trials("large") == TRIALS


@pytest.mark.slow
def test_the_order_of_many_is_kept(storage: SqlStorage) -> None:
    assert storage.finished_order("large") == ORDER
    news = storage.since("large", finished=len(ORDER) - 11_000, trials=MANY - 3)
    assert news.finished == [TRIALS[number] for number in ORDER[-11_000:]]
    assert news.added == TRIALS[-3:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    ["SET cost_s = cost_s + 1", "SET metrics = '{}'", "SET told = told + 1", "SET worker = 3"],
)
def test_the_one_that_is_damaged_is_named(copy: Path, damage: str) -> None:
    row = f"UPDATE dse_trials {damage} WHERE number = 17001"
    storage = changed(copy, row, "DELETE FROM dse_pages")
    with closing(storage), pytest.raises(StorageError, match="trial 17001 is damaged"):
        storage.trials("large")


@pytest.mark.slow
def test_one_that_is_missing_is_told(copy: Path) -> None:
    storage = changed(copy, "DELETE FROM dse_trials WHERE number = 24999")
    with (
        closing(storage),
        pytest.raises(StorageError, match="study 'large': trials 24999 are missing"),
    ):
        storage.trials("large")


@pytest.mark.slow
def test_what_a_page_holds_is_read_although_its_rows_are_damaged(copy: Path) -> None:
    with closing(changed(copy, "UPDATE dse_trials SET told = 0 WHERE number = 17001")) as storage:
        assert storage.trials("large") == TRIALS


@pytest.mark.slow
def test_what_a_page_holds_is_salvaged_although_its_rows_are_lost(copy: Path) -> None:
    lost = "DELETE FROM dse_trials WHERE number BETWEEN 17001 AND 17010"
    damages = list[Damage]()
    with closing(changed(copy, lost)) as storage, storage.reader("large", damages.append) as read:
        assert sum(len(page) for page in read.trials()) == MANY
    assert damages == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE dse_pages SET content = substr(content, 1, 9999) WHERE seq = 2",
        "UPDATE dse_pages SET content = 'no bytes' WHERE seq = 2",
        "UPDATE dse_pages SET content = X'', sum = 0 WHERE seq = 0",
        "UPDATE dse_pages SET seq = 9 WHERE seq = 1",
        "DELETE FROM dse_pages",
    ],
)
def test_where_a_page_is_damaged_the_rows_are_read(copy: Path, damage: str) -> None:
    with closing(changed(copy, damage)) as storage:
        assert storage.trials("large") == TRIALS


@pytest.mark.slow
def test_a_page_that_is_a_program_is_not_run(copy: Path, tmp_path: Path) -> None:
    done = tmp_path / "done"
    page = BytesIO()
    np.savez(page, number=np.array([Program(done)], dtype=object))
    content = page.getvalue()
    np.load(BytesIO(content), allow_pickle=True)["number"]
    assert done.exists()  # so would it be run
    done.rmdir()
    with closing(sqlite3.connect(copy)) as connection, connection:
        values = (content, zlib.crc32(content))
        connection.execute("UPDATE dse_pages SET content = ?, sum = ? WHERE seq = 0", values)
    with closing(SqlStorage(f"sqlite:///{copy}")) as storage:
        assert storage.trials("large") == TRIALS
    assert not done.exists()


def test_a_page_is_written_when_its_last_trial_has_finished(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    with closing(SqlStorage(f"sqlite:///{file}")) as storage:
        storage.create("edge", {})
        storage.add("edge", [Design({"tp": number}) for number in range(PAGE + 1)])
        storage.finish("edge", {number: outcome(number) for number in range(PAGE - 1)})
        assert pages_of(file) == []
        storage.finish("edge", {PAGE: outcome(PAGE)})
        storage.finish("edge", {PAGE - 1: outcome(PAGE - 1)})
        assert pages_of(file) == [0]
        assert storage.finished_order("edge") == [*range(PAGE - 1), PAGE, PAGE - 1]


@pytest.mark.slow
def test_pages_that_an_older_study_lacks_are_written_when_it_goes_on(copy: Path) -> None:
    with closing(changed(copy, "DELETE FROM dse_pages")) as storage:
        new = storage.add("large", [Design({"more": number}) for number in range(PAGE)])
        storage.finish("large", {one.number: outcome(one.number) for one in new})
        assert pages_of(copy) == list(range(7))
        assert storage.trials("large")[:MANY] == TRIALS
