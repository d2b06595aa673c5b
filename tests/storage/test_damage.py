"""A study file that was cut, flipped, or left by a crash is refused in words, or read as it was."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dse.core.design import Design
from dse.core.trial import Ask, Driver, Event, History, Report, Trial
from dse.errors import DseError
from dse.storage.sql.database_storage import SqlStorage
from dse.testing.storage_contract import CRASHED, DESIGNS, DONE, IMPOSSIBLE, STUDY

SPEC = {"seed": 7, "identity": {"space": "größer"}}
MORE = [Design({"tp": tp, "format": "int8"}) for tp in range(40)]


def fill(storage: SqlStorage) -> None:
    storage.create(STUDY, SPEC)
    storage.enter(STUDY, Driver(host="here", pid=7, started="1", provenance={"python": "3.11"}))
    storage.add(STUDY, DESIGNS, Ask(wanted=4, by="random", seconds=0.25))
    storage.claim(STUDY, [0, 1, 3], 0)
    storage.report(STUDY, [Report(number=1, step=1, metrics={"q.accuracy": 0.5})])
    storage.finish(STUDY, {1: DONE, 0: CRASHED}, [Event(kind="choice", text="nsga2")])
    storage.retry(STUDY, {3: CRASHED})
    storage.add(STUDY, MORE, Ask(told=2, after=4, worker=0))
    storage.finish(STUDY, dict.fromkeys(range(40, 4, -1), IMPOSSIBLE))
    storage.beat(STUDY, 0)


def read(url: str) -> tuple[Any, ...]:
    storage = SqlStorage(url)
    try:
        before = contents(storage)
        (new,) = storage.add(STUDY, DESIGNS[:1])
        storage.finish(STUDY, {new.number: DONE})
        after = list(storage.trials(STUDY))
        return before, after == [*before[0].trials, new.finished(DONE)]
    finally:
        storage.close()


def contents(storage: SqlStorage) -> tuple[History, Any]:
    trials = storage.trials(STUDY)
    return History(
        trials=list(trials),
        order=storage.finished_order(STUDY),
        events=storage.events(STUDY),
        asks=storage.asks(STUDY),
        attempts=storage.attempts(STUDY),
        reports=storage.reports(STUDY),
        drivers=storage.drivers(STUDY),
    ), storage.spec(STUDY)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, tuple[Any, ...]]:
    """A study file, and what is in it."""
    file = tmp_path_factory.mktemp("whole") / "study.db"
    storage = SqlStorage(f"sqlite:///{file}")
    fill(storage)
    storage.close()
    content = file.read_bytes()
    return content, read(f"sqlite:///{file}")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, list[Trial]]:
    """What a process that was killed leaves: the file, its journal, and what had been done."""
    file = tmp_path_factory.mktemp("left") / "study.db"
    storage = SqlStorage(f"sqlite:///{file}")
    fill(storage)
    journal = file.with_name("study.db-wal")
    content = file.read_bytes(), journal.read_bytes(), list(storage.trials(STUDY))
    storage.close()
    return content


def recovered(folder: Path, content: bytes, journals: Iterable[bytes]) -> Iterator[list[Trial]]:
    """The trials that are there with each journal; none where it is refused."""
    for place, journal in enumerate(journals):
        file = folder / f"{place}.db"
        file.write_bytes(content)
        file.with_name(f"{place}.db-wal").write_bytes(journal)
        try:
            storage = SqlStorage(f"sqlite:///{file}")
            yield list(storage.trials(STUDY)) if storage.studies() else []
            storage.close()
        except DseError:
            yield []


def is_earlier(found: list[Trial], last: list[Trial]) -> bool:
    """True if the trials are what they are at last, or were before they were finished."""
    return len(found) <= len(last) and all(
        one == end or (not one.state.finished and one.design == end.design)
        for one, end in zip(found, last, strict=False)
    )


def verdicts(folder: Path, damaged: Iterable[bytes], expected: object) -> Iterator[str]:
    """What becomes of each damaged file; whatever is no error of ours comes through."""
    for place, content in enumerate(damaged):
        file = folder / f"{place}.db"
        file.write_bytes(content)
        try:
            yield "same" if read(f"sqlite:///{file}") == expected else f"file {place} is another"
        except DseError:
            yield "refused"
        for left in folder.glob(f"{place}.db*"):
            left.unlink()


def cut(content: bytes, places: Iterable[int]) -> Iterator[bytes]:
    return (content[:place] for place in places)


def flipped(content: bytes, seeds: Iterable[int]) -> Iterator[bytes]:
    for seed in seeds:
        chance = random.Random(seed)
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        yield bytes(changed)


def test_a_file_that_was_cut_is_refused_or_read_as_it_was(whole, tmp_path):
    content, expected = whole
    places = [*range(0, 512, 64), *range(512, len(content), 2039), len(content) - 1]
    assert set(verdicts(tmp_path, cut(content, places), expected)) <= {"refused", "same"}


@pytest.mark.proof
def test_a_file_that_was_cut_anywhere_is_refused_or_read_as_it_was(whole, tmp_path):
    content, expected = whole
    damaged = cut(content, range(len(content)))
    assert set(verdicts(tmp_path, damaged, expected)) <= {"refused", "same"}


@pytest.mark.slow
def test_a_flipped_bit_is_told_or_changes_nothing(whole, tmp_path):
    content, expected = whole
    found = set(verdicts(tmp_path, flipped(content, range(150)), expected))
    assert found == {"refused", "same"}


@pytest.mark.proof
def test_a_thousand_flipped_bits_are_told_or_change_nothing(whole, tmp_path):
    content, expected = whole
    found = set(verdicts(tmp_path, flipped(content, range(1000, 2000)), expected))
    assert found == {"refused", "same"}


def test_a_whole_journal_brings_back_all_that_was_done(left, tmp_path):
    content, journal, last = left
    assert list(recovered(tmp_path, content, [journal])) == [last]


@pytest.mark.slow
def test_a_journal_that_was_cut_brings_back_what_was_done_before(left, tmp_path):
    content, journal, last = left
    journals = cut(journal, range(0, len(journal), 4001))
    found = list(recovered(tmp_path, content, journals))
    assert all(is_earlier(trials, last) for trials in found)
    assert len({len(trials) for trials in found}) > 2


@pytest.mark.slow
def test_a_flipped_bit_in_a_journal_brings_back_what_was_done_before(left, tmp_path):
    content, journal, last = left
    found = list(recovered(tmp_path, content, flipped(journal, range(60))))
    assert all(is_earlier(trials, last) for trials in found)
