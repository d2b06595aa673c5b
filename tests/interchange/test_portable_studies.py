"""A study that went through a file goes on as if it had never left."""

import os
from contextlib import closing

import pytest

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Ask, Driver, Event, Outcome, Report, State
from dse.errors import StudyError
from dse.interop.archive import archive as portable
from dse.interop.archive.archive import restore
from dse.interop.archive.stream import Stream, open_stream
from dse.interop.archive.study_record import Record, about
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.storage.sql.database_storage import SqlStorage
from dse.study.study_engine import StudyEngine

FORMS = ("jsonl", "parquet")
POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def elsewhere(request, tmp_path):
    """Another storage than the one that the study was begun in."""
    if request.param == "memory":
        yield MemoryStorage()
        return
    if request.param == "postgresql" and not POSTGRES:
        pytest.skip("DSE_TEST_POSTGRES names no server")
    url = POSTGRES if request.param == "postgresql" else f"sqlite:///{tmp_path}/elsewhere.db"
    storage = SqlStorage(url)
    yield storage
    if "carried-here" in storage.studies():
        storage.delete("carried-here")
    storage.close()


@pytest.mark.parametrize("form", FORMS)
def test_a_study_that_was_carried_ends_where_one_that_stayed_does(
    tmp_path, study_file, elsewhere, form
):
    twin = StudyEngine.open(study_file, storage=MemoryStorage())
    twin.run(budget=Budget(trials=11))
    twin.run()
    begun = StudyEngine.open(study_file, storage=f"sqlite:///{tmp_path}/here.db")
    begun.run(budget=Budget(trials=11))
    portable.write(Record.of(begun.storage, "carry"), tmp_path / f"study.{form}")
    begun.storage.close()
    restore(
        portable.read_archive(tmp_path / f"study.{form}"),
        elsewhere,
        name="carried-here",
        trusted=True,
    )
    carried = StudyEngine.load("carried-here", elsewhere)
    carried.run()
    assert [t.design for t in carried.trials] == [t.design for t in twin.trials]
    assert [t.metrics for t in carried.finished] == [t.metrics for t in twin.finished]
    assert carried.front.hypervolume == twin.front.hypervolume


@pytest.mark.parametrize("form", FORMS)
def test_a_study_that_is_exported_again_is_the_same_file(tmp_path, study_file, form):
    study = StudyEngine.open(study_file, storage=MemoryStorage())
    study.run(budget=Budget(trials=5))
    record = Record.of(study.storage, "carry")
    portable.write(record, tmp_path / f"once.{form}")
    elsewhere = MemoryStorage()
    restore(portable.read_archive(tmp_path / f"once.{form}"), elsewhere)
    portable.write(Record.of(elsewhere, "carry"), tmp_path / f"twice.{form}")
    once, twice = (tmp_path / f"{name}.{form}" for name in ("once", "twice"))
    assert once.read_bytes() == twice.read_bytes()


def test_a_file_is_a_study_without_any_storage_of_its_own(tmp_path, study_file):
    study = StudyEngine.open(study_file, storage=MemoryStorage())
    study.run(budget=Budget(trials=5))
    portable.write(Record.of(study.storage, "carry"), tmp_path / "study.jsonl")
    record = portable.read_archive(tmp_path / "study.jsonl")
    assert record.finished == study.finished
    assert record.spec == study.storage.spec("carry")
    assert record.events == tuple(study.events)


def test_the_first_line_tells_units_and_goals(tmp_path, study_file):
    study = StudyEngine.open(study_file, storage=MemoryStorage())
    told = about(study.problem)
    assert told["objectives"][1] == {
        "expression": "cost.error * clock",
        "goal": "minimize",
        "unit": "Hz",
    }
    assert told["metrics"]["cost.energy"]["unit"] == "pJ"
    assert told["parameters"]["power"] == {"kind": "ordinal", "unit": "W"}
    assert told["limits"] == ["cost.energy <= 60 pJ"]


def test_a_study_that_is_not_there_cannot_be_exported():
    with pytest.raises(StudyError, match="no study 'carry'"):
        Record.of(MemoryStorage(), "carry")


@pytest.mark.parametrize("form", FORMS)
def test_a_study_that_is_read_in_pieces_is_written_as_its_record(tmp_path, form, monkeypatch):
    monkeypatch.setattr("dse.storage.sql.reader.PIECE", 7)
    with closing(SqlStorage(f"sqlite:///{tmp_path}/dse.db")) as storage:
        restore(large(), storage)
        whole = portable.write(Record.of(storage, "large"), tmp_path / f"whole.{form}")
        with open_stream(storage, "large") as stream:
            assert isinstance(stream, Stream)
            assert portable.write(stream, tmp_path / f"pieces.{form}") == whole
    pieces = (tmp_path / f"pieces.{form}").read_bytes()
    assert pieces == (tmp_path / f"whole.{form}").read_bytes()
    assert portable.read_archive(tmp_path / f"pieces.{form}") == large()


def large() -> Record:
    """Forty trials, of which some wait, failed or were tried again, with all that goes with them."""
    done = Outcome(state=State.DONE, metrics={"chip.energy": 0.1 + 0.2}, cost_s=1.5, measured=1)
    lost = Outcome(state=State.FAILED, failure=Failure(kind="crashed", reason="\x00 \udcff"))
    storage = MemoryStorage()
    storage.create("large", {"seed": 7})
    storage.enter("large", Driver(host="here", pid=7, started="1"))
    storage.add("large", [Design({"rows": rows}) for rows in range(40)], Ask(by="random"))
    storage.retry("large", {39: lost, 20: lost})
    storage.report("large", [Report(number=2, step=n, metrics={"q.loss": 0.5}) for n in range(9)])
    told = {n: lost if n % 5 == 0 else done for n in range(38, -1, -3)}
    storage.finish("large", told, [Event(kind="choice", text=f"no {n}") for n in range(15)])
    return Record.of(storage, "large")
