"""A file that is locked, a disk that is full, a folder that takes no writes; and the words for it."""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from dse import Metric, Study, Trial, evaluator
from dse.cli.app import app
from dse.cli.run import STORAGE_AWAY
from dse.core.design import Design
from dse.core.trial import Ask, Driver, Outcome, State
from dse.errors import OutageError, SpecError, SpecErrors, StorageError, StorageRefusedError
from dse.schema.study.run_sections import patience_of
from dse.storage.memory import MemoryStorage
from dse.storage.patience import PATIENCE_S
from dse.storage.retrying import retry_calls
from dse.storage.sql.database_storage import SqlStorage
from dse.storage.sql.outages import classify
from dse.study.claimed_trials import Lease
from dse.testing.outage_contract import FaultyStorage

SPACE = {"rows": (1, 40), "cols": (1, 40)}
ASKED: dict[str, Any] = {"optimizer": "random", "executor": "serial", "budget": {"trials": 6}}
DONE = Outcome(state=State.DONE, metrics={"loss": 1.0}, cost_s=0.5)
STUDY = """
study: s
space: space.yaml
evaluators: {chip: {use: expression, metrics: {time: {formula: 1000 / rows}}}}
objectives: [{minimize: chip.time}]
optimizer: random
executor: {use: serial, batch: 1}
budget: {trials: 3}
"""


@evaluator(Metric("time", goal="minimize"), version="1")
def board(rows: int, cols: int) -> dict[str, float]:
    return {"time": rows * cols}


@pytest.fixture(autouse=True)
def impatient_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dse.storage.sql.database.BUSY_TIMEOUT_S", 0.05)


@pytest.fixture(scope="module")
def undisturbed() -> list[Trial]:
    study = Study("s", SPACE, [board], storage=MemoryStorage(), **ASKED)
    study.run()
    return [replace(trial, cost_s=0.0) for trial in study.trials]


@pytest.fixture
def limit() -> Iterator[Callable[[int], None]]:
    """Sets how large this process may make a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_disturbed(file: Path, deed: Callable[[], None], back: Callable[[], None]) -> Any:
    """The trials of a study, at the third of which the deed is done, and what was said."""
    said: list[str] = []

    def undo() -> None:
        time.sleep(0.3)
        back()

    thread = Thread(target=undo)

    def disturb(trial: Trial) -> None:
        if trial.number == 2:
            deed()
            thread.start()

    with closing(SqlStorage(f"sqlite:///{file}")) as storage:
        study = Study("s", SPACE, [board], storage=storage, **ASKED)
        study.engine.run(on_finished=disturb, on_notice=said.append)
        thread.join()
        return [replace(trial, cost_s=0.0) for trial in study.trials], said


def test_a_file_that_another_program_locks_is_waited_for(tmp_path, undisturbed):
    file = tmp_path / "study.db"
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    with closing(other):
        trials, said = run_disturbed(
            file, lambda: other.execute("BEGIN IMMEDIATE"), lambda: other.execute("ROLLBACK")
        )
    assert trials == undisturbed
    assert "the storage is away (database is locked): trying again for 15 min" in said
    assert "the storage is back" in said[-1]


def test_a_file_that_may_not_grow_is_waited_for(tmp_path, undisturbed, limit):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    trials, said = run_disturbed(tmp_path / "study.db", lambda: limit(4096), lambda: limit(before))
    assert trials == undisturbed
    assert [text.split(" ")[3] for text in said] == ["away", "back"]


def test_a_storage_that_never_took_a_write_is_not_waited_for():
    storage = FaultyStorage(storage=MemoryStorage())
    storage.storage.create("s", {})
    storage.enter = _refuse  # type: ignore[attr-defined]
    with pytest.raises(StorageRefusedError):
        retry_calls(storage).enter("s", Driver())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM missing", "SELEC 1", "SELECT json('{')"],
    ids=["table", "word", "json"],
)
def test_an_error_that_never_heals_is_not_waited_for(statement):
    with closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute(statement)
        assert classify(caught.value) is StorageError


def test_a_command_whose_storage_stays_away_ends_with_a_status_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text("space: s\nparameters: {rows: {ordinal: range(1 .. 40)}}\n")
    Path("study.yaml").write_text(STUDY)
    runner = CliRunner()
    first = runner.invoke(app, ["run", "study.yaml", "--trials", "1", "-q"])
    with closing(sqlite3.connect("dse.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        again = ["resume", "s", "-q", "--storage-patience"]
        away = runner.invoke(app, [*again, "0.1 s"])
        odd = runner.invoke(app, [*again, "soon"])
        other.execute("ROLLBACK")
    back = runner.invoke(app, ["resume", "s", "-q"])
    assert (first.exit_code, away.exit_code, back.exit_code) == (0, STORAGE_AWAY, 0)
    assert "the storage was away for" in away.output
    assert "database is locked" in away.output
    assert "go on with: dse resume s" in away.output
    assert isinstance(odd.exception, SpecError)
    assert odd.exception.where == "--storage-patience"


@pytest.mark.parametrize(
    ("stated", "seconds"), [(None, PATIENCE_S), ("2 h", 7200.0), ("90 s", 90.0), (0, 0.0)]
)
def test_a_study_says_how_long_it_waits(stated, seconds):
    asked = {} if stated is None else {"storage_patience": stated}
    study = Study("s", SPACE, [board], storage=MemoryStorage(), **ASKED, **asked)
    assert study.engine.plan.storage_patience_s == seconds
    assert patience_of(stated) == seconds


@pytest.mark.parametrize("stated", ["soon", "3 m", -1, "-1 min", 90])
def test_a_patience_that_is_no_time_is_refused(stated):
    with pytest.raises(SpecErrors, match="storage_patience"):
        Study("s", SPACE, [board], storage=MemoryStorage(), storage_patience=stated, **ASKED)


def test_who_cannot_beat_takes_nobody_for_lost():
    kept = MemoryStorage()
    kept.create("s", {})
    elsewhere = kept.enter("s", Driver(host="elsewhere", pid=1))
    storage = FaultyStorage(storage=kept, hang_s=0.6, mishaps={3: "hangs"})
    with Lease(storage, "s", lease_s=0.3) as lease:  # type: ignore[arg-type]
        lease.look()
        storage.trials("s")
        storage.trials("s")  # hangs: no beat gets through meanwhile
        lease.look()
        after = lease.lost
        until = time.monotonic() + 300
        while elsewhere not in lease.lost:
            assert time.monotonic() < until
            time.sleep(0.05)
            lease.look()
    assert after == frozenset()
    assert lease.was_blind()


def test_a_fault_of_a_driver_that_was_away_does_not_free_the_trial_of_another():
    kept = MemoryStorage()
    kept.create("s", {})
    away = retry_calls(FaultyStorage(storage=kept, mishaps={2: "fails"}))  # type: ignore[arg-type]
    own, other = away.enter("s", Driver()), kept.enter("s", Driver())
    away.add("s", [Design({"x": 1})], Ask(after=0, worker=own))
    away.events("s")  # fails once
    kept.claim("s", [0], other, lost=[own])
    assert away.retry("s", {0: replace(DONE, state=State.FAILED)}) == []
    assert kept.trials("s")[0].worker == other


def test_outcomes_that_nobody_can_store_end_the_run_with_the_error_of_the_storage(state):
    kept = MemoryStorage()
    kept.create("s", {})
    storage = FaultyStorage(storage=kept, mishaps=dict.fromkeys(range(2, 1000), "fails"))
    away = retry_calls(storage, patience_s=0.0)  # type: ignore[arg-type]
    own = away.enter("s", Driver())
    away.add("s", [Design({"x": 1})], Ask(after=0, worker=own))
    away.set_aside({0: DONE})
    with pytest.raises(OutageError, match="finish did not get through"):
        away.finish("s", {0: DONE}, worker=own)
    assert len(list(state.glob("outcomes-*.json"))) == 1


def _refuse(*_: object) -> int:
    raise StorageRefusedError("attempt to write a readonly database")
