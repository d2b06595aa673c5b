"""Contract tests of a storage that outlives its process, with real processes.

.. code-block:: python

    class TestSqliteSurvives(DurabilityContract):
        @pytest.fixture
        def url(self, tmp_path):
            return f"sqlite:///{tmp_path}/study.db"

The storage must be registered as a plug-in: the processes find it by its URL.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dse.core.design import Design
from dse.core.trial import Ask, Driver, Event, Report, State, Trial
from dse.protocols import Storage
from dse.testing.storage_contract import CRASHED, DESIGNS, DONE, STUDY
from dse.testing.storage_writer import SIZE, opened, outcome

_TIMEOUT_S = 60.0


class DurabilityContract:
    """Contract tests of a storage: stored data survive the end of the process."""

    @pytest.fixture
    def url(self) -> str:
        """Return the URL of a new or empty storage; subclasses have to override this fixture."""
        raise NotImplementedError("the contract needs the fixture 'url'")

    def test_what_a_method_did_is_there_when_opened_again(self, url: str) -> None:
        with _open(url) as storage:
            storage.create(STUDY, {"seed": 7})
            storage.add(STUDY, DESIGNS, Ask(told=2))
            storage.move(STUDY, [0, 1], State.RUNNING)
            storage.finish(STUDY, {3: DONE, 1: CRASHED})
            storage.record(STUDY, [Event(kind="choice", text="nsga2", told=1)])
            storage.enter(STUDY, Driver(host="here", pid=7))
            storage.claim(STUDY, [2], 0)
            storage.retry(STUDY, {0: CRASHED})
            storage.report(STUDY, [Report(number=2, step=1, metrics={"q.accuracy": 0.5})])
            before = storage.trials(STUDY)
            beside = storage.asks(STUDY), storage.attempts(STUDY), storage.drivers(STUDY)
        with _open(url) as again:
            assert again.studies() == [STUDY]
            assert again.spec(STUDY) == {"seed": 7}
            assert again.trials(STUDY) == before
            assert again.finished_order(STUDY) == [3, 1]
            assert again.events(STUDY) == [Event(kind="choice", text="nsga2", told=1)]
            assert (again.asks(STUDY), again.attempts(STUDY), again.drivers(STUDY)) == beside
            assert [report.number for report in again.reports(STUDY)] == [2]

    def test_what_one_connection_did_another_sees_at_once(self, url: str) -> None:
        with _open(url) as one, _open(url) as other:
            one.create(STUDY, {})
            assert other.studies() == [STUDY]
            other.add(STUDY, DESIGNS[:1])
            assert len(one.trials(STUDY)) == 1
            one.finish(STUDY, {0: DONE})
            assert other.finished_order(STUDY) == [0]

    def test_two_processes_open_a_new_storage_and_number_trials_without_a_gap(
        self, url: str
    ) -> None:
        writers = [_writer(url, rounds=60) for _ in range(2)]
        outputs = [writer.communicate(timeout=_TIMEOUT_S)[0] for writer in writers]
        assert [writer.returncode for writer in writers] == [0, 0]
        numbers = [_parse_promises(text)["added"] for text in outputs]
        assert [len(mine) for mine in numbers] == [60 * SIZE] * 2
        with _open(url) as storage:
            everyone = list(range(120 * SIZE))
            assert sorted(numbers[0] + numbers[1]) == everyone
            assert [trial.number for trial in storage.trials(STUDY)] == everyone
            assert sorted(storage.finished_order(STUDY)) == everyone

    @pytest.mark.parametrize("seed", range(6))
    def test_a_killed_writer_loses_nothing_that_was_acknowledged(self, url: str, seed: int) -> None:
        promised = _parse_promises(_kill_writer(url, random.Random(seed).uniform(0.0, 0.2)))  # noqa: S311
        with _open(url) as storage:
            trials, order = storage.trials(STUDY), storage.finished_order(STUDY)
            assert [trial.number for trial in trials] == list(range(len(trials)))
            assert set(promised["added"]) <= {trial.number for trial in trials}
            assert order[: len(promised["finished"])] == promised["finished"]
            assert [trials[number] for number in order] == [
                _build_finished_trial(number) for number in order
            ]
            events = [int(event.text) for event in storage.events(STUDY)]
            assert events[: len(promised["recorded"])] == promised["recorded"]

    @pytest.mark.parametrize("seed", range(6, 9))
    def test_what_a_killed_writer_did_not_finish_left_no_trace(self, url: str, seed: int) -> None:
        promised = _parse_promises(_kill_writer(url, random.Random(seed).uniform(0.0, 0.2)))  # noqa: S311
        with _open(url) as storage:
            trials, order = storage.trials(STUDY), storage.finished_order(STUDY)
            assert len(trials) in (len(promised["added"]), len(promised["added"]) + SIZE)
            assert len(order) in (len(promised["finished"]), len(promised["finished"]) + SIZE)
            assert all(trial.state is State.PENDING for trial in trials[len(order) :])
            more = storage.add(STUDY, DESIGNS[:1])
            assert [trial.number for trial in more] == [len(trials)]


@contextmanager
def _open(url: str) -> Iterator[Storage]:
    storage = opened(url)
    try:
        yield storage
    finally:
        storage.close()


def _writer(url: str, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dse.testing.storage_writer", url, STUDY, str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own words


def _kill_writer(url: str, after_s: float) -> str:
    """Kill a writer ``after_s`` seconds after its first line, and return its output until then."""
    writer = _writer(url, rounds=1_000_000)
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(after_s)
    writer.kill()
    with writer:
        return first + writer.stdout.read()  # communicate() would lose the buffer of readline()


def _parse_promises(output: str) -> dict[str, list[int]]:
    """Return the numbers that the writer printed as stored, by action such as ``added``.

    A truncated last line is ignored.
    """
    found: dict[str, list[int]] = defaultdict(list)
    for line in output.splitlines(keepends=True):
        if line.endswith("\n"):
            verb, *numbers = line.split()
            found[verb] += map(int, numbers)
    return found


def _build_finished_trial(number: int) -> Trial:
    turn, place = divmod(number, SIZE)
    asked = Trial(number=number, design=Design({"turn": turn, "place": place}), told=turn)
    return asked.finished(outcome(number))
