"""A database of each older version, as it was stored by the program of its time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Asked, Event, Outcome, State, Trial
from dse.errors import StorageError
from dse.storage.sql.database_storage import SqlStorage
from tests.postgresql_servers import needs_postgres, new_schema

FIRST = Path(__file__).parent / "version_1.sql"
SECOND = Path(__file__).parent / "version_2.sql"
STUDY = "edge: größer & 'besser'"

DESIGNS = [
    Design({"tp": tp, "clock": 0.1 * tp, "format": "int8", "on": tp % 2 == 0}) for tp in range(1, 9)
]
ODD = Failure(kind="crashed", reason="no UTF-8: \x00 \udcff \U0001f600")
BIG = Failure(kind="infeasible", reason="it's too big")
OUTCOMES = {
    2: Outcome(
        state=State.DONE,
        metrics={"q.accuracy": 0.1 + 0.2, "chip.energy": 5e-324},
        spread={"q.accuracy": 1e-3},
        cost_s=1.5,
        measured=2,
    ),
    0: Outcome(state=State.FAILED, failure=ODD, cost_s=0.25),
    1: Outcome(state=State.INFEASIBLE, metrics={"chip.area": 2.0}, failure=BIG),
    5: Outcome(state=State.OUTSIDE, metrics={"q.accuracy": 0.5}),
    4: Outcome(state=State.SCREENED, metrics={"chip.area": 1 / 3}, measured=1),
}
ASKED = [Trial(number=number, design=design) for number, design in enumerate(DESIGNS)]
TRIALS = [
    *(trial.finished(OUTCOMES[trial.number]) for trial in ASKED[:3]),
    ASKED[3],
    *(trial.finished(OUTCOMES[trial.number]) for trial in ASKED[4:6]),
    ASKED[6].moved(State.RUNNING),
    ASKED[7],
]
EVENTS = [
    Event(kind="choice", text="nsga2: größer"),
    Event(kind="proof", text="all\nof them", told=5),
]
OPEN = """
import json, sys
from dse.storage.sql.database_storage import SqlStorage
storage = SqlStorage(sys.argv[1])
print(json.dumps([len(storage.trials(study)) for study in storage.studies()]))
storage.close()
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgres)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        file = f"sqlite:///{tmp_path}/old.db"
        yield stack.enter_context(new_schema()) if request.param == "postgresql" else file


@pytest.fixture
def old(empty: str) -> str:
    fill(empty, FIRST.read_text())
    return empty


@pytest.fixture
def brought_up(old: str) -> Iterator[SqlStorage]:
    storage = SqlStorage(old)
    yield storage
    storage.close()


def fill(url: str, script: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        driver = connection.connection.dbapi_connection
        getattr(driver, "executescript", driver.execute)(script)
    engine.dispose()


def changed(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_an_old_database_is_read_as_it_was_written(brought_up: SqlStorage) -> None:
    assert brought_up.studies() == [STUDY, "second"]
    assert brought_up.spec(STUDY) == {
        "seed": 7,
        "identity": {"z": [1, 2.5, None, True], "a": {"ß": "\n"}},
    }
    assert brought_up.trials(STUDY) == TRIALS
    assert brought_up.finished_order(STUDY) == list(OUTCOMES)
    assert brought_up.events(STUDY) == EVENTS
    assert brought_up.trials("second") == ASKED[:2]


def test_an_old_study_is_gone_on_with(brought_up: SqlStorage) -> None:
    assert [trial.number for trial in brought_up.add(STUDY, DESIGNS[:1])] == [8]
    assert brought_up.finish(STUDY, {6: OUTCOMES[2], 2: OUTCOMES[0]}, EVENTS) == [6]
    assert brought_up.finished_order(STUDY) == [*OUTCOMES, 6]
    assert brought_up.trials(STUDY)[6] == ASKED[6].finished(OUTCOMES[2])
    assert brought_up.events(STUDY) == EVENTS * 2
    assert brought_up.asks(STUDY) == [Asked(first=8, count=1)]


def test_a_database_without_times_is_read_and_gone_on_with(empty: str) -> None:
    script = SECOND.read_text()
    fill(empty, script.replace("BLOB", "BYTEA") if empty.startswith("postgresql") else script)
    with closing(SqlStorage(empty)) as storage:
        trials = storage.trials(STUDY)
        assert [dict(trial.design) for trial in trials] == [dict(one) for one in DESIGNS]
        assert {trial.number: trial.outcome for trial in trials.finished} == OUTCOMES
        assert {(t.asked_at, t.begun_at, t.finished_at) for t in trials} == {(None, None, None)}
        (attempt,) = storage.attempts(STUDY)
        assert (attempt.number, attempt.failure, attempt.begun_at) == (7, ODD, None)
        storage.begin(STUDY, {7: 5.5})
        late = Outcome(state=State.FAILED, failure=ODD, begun_at=6.5, finished_at=7.5)
        storage.retry(STUDY, {7: late})
        storage.finish(STUDY, {6: late})
        trials = storage.trials(STUDY)
        assert (trials[6].begun_at, trials[6].finished_at, trials[7].begun_at) == (6.5, 7.5, None)
        assert [one.finished_at for one in storage.attempts(STUDY)] == [None, 7.5]


@pytest.mark.slow
def test_processes_that_open_an_old_database_at_once_bring_it_up_once(old: str) -> None:
    command = [sys.executable, "-c", OPEN, old]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [json.loads(one) for one in said] == [[8, 2]] * 4


def test_a_trial_that_was_damaged_before_there_were_checksums_is_told(old: str) -> None:
    changed(old, "UPDATE dse_trials SET design = replace(design, 'int8', 'int4') WHERE number = 1")
    storage = SqlStorage(old)
    with pytest.raises(StorageError, match="trial 1 is damaged"):
        storage.trials(STUDY)
    with pytest.raises(StorageError, match="trial 1 is damaged"):
        storage.finish("second", {1: OUTCOMES[2]})
    storage.close()
