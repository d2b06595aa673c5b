"""Contract tests of a storage whose replies may be lost; used like ``storage_contract``.

A driver repeats a call whose reply did not arrive. Whether the first call took effect is derived
from the stored state of the study.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Literal, get_args

import pytest

from dse.core.trial import Ask, Driver, Report
from dse.errors import StorageUnavailableError
from dse.protocols import Queueing, Storage
from dse.storage import patience as outage
from dse.storage.retrying import RetryingStorage, retry_calls
from dse.testing.sharing_contract import CHOICE, LOST
from dse.testing.storage_contract import CRASHED, DESIGNS, DONE, STUDY

_REPORT = Report(number=0, step=1, metrics={"q.accuracy": 0.5})

Mishap = Literal["fails", "acts and fails", "hangs"]
"""Failure of one call: it fails without effect, fails after its effect, or takes effect late."""

UNCOUNTED = ("beat", "close")
"""Calls that are not numbered: a thread sends heartbeats at times the test cannot control."""


def _take(storage: RetryingStorage, own: int) -> object:
    if not isinstance(storage, Queueing):
        return None
    taken = storage.take(STUDY, own, 1)
    return [list(taken.trials), taken.inherited]


_CALLS: dict[str, Callable[[RetryingStorage, int], object]] = {
    "add": lambda storage, own: storage.add(
        STUDY, DESIGNS[2:], Ask(told=0, after=2, worker=own, events=(CHOICE,))
    ),
    "claim": lambda storage, own: storage.claim(STUDY, [1, 0], own),
    "begin": lambda storage, _: storage.begin(STUDY, {0: 1.0}),
    "finish": lambda storage, own: storage.finish(STUDY, {1: DONE, 0: CRASHED}, [CHOICE], own),
    "retry": lambda storage, _: storage.retry(STUDY, {0: LOST}),
    "record": lambda storage, _: storage.record(STUDY, [CHOICE, replace(CHOICE, told=4)]),
    "report": lambda storage, _: storage.report(STUDY, [_REPORT]),
    "report again": lambda storage, _: _report_twice(storage),
    "leave": lambda storage, own: storage.leave(STUDY, own),
    "take": _take,
    "delete": lambda storage, _: storage.delete(STUDY),
    "create": lambda storage, _: storage.create("another", {"seed": 8}),
}

MISHAPS = [mishap for mishap in get_args(Mishap) if mishap != "hangs"]


class OutageContract:
    """Contract tests of a storage: processes may repeat calls after an outage."""

    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        """Yield an empty storage; subclasses have to override this fixture."""
        raise NotImplementedError("the contract needs the fixture 'storage'")

    @pytest.fixture(autouse=True)
    def short_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Shorten the pause before a retry to 1 ms, so that the tests are fast."""
        monkeypatch.setattr(outage, "_FIRST_PAUSE_S", 0.001)

    @pytest.mark.parametrize("mishap", MISHAPS)
    @pytest.mark.parametrize("name", sorted(_CALLS))
    def test_a_call_that_is_made_again_takes_effect_once(
        self, storage: Storage, name: str, mishap: Mishap
    ) -> None:
        found = []
        for place in (None, "now"):
            faulty = FaultyStorage(storage=storage)
            driver = retry_calls(faulty)
            driver.create(STUDY, {"seed": 7})
            own = driver.enter(STUDY, Driver(host="here", pid=7))
            driver.add(STUDY, DESIGNS[:2], Ask(after=0))
            if name == "retry":
                driver.claim(STUDY, [0], own)
            if place:
                first = len(faulty.calls) + (name == "report")  # it counts the reports before
                faulty.mishaps = {first: mishap}
            answer = _CALLS[name](driver, own)
            found.append((answer, _dump_storage(storage)))
            for study in storage.studies():
                storage.delete(study)
        assert found[0] == found[1]

    @pytest.mark.parametrize("mishap", MISHAPS)
    def test_a_driver_that_enters_again_has_entered_once(
        self, storage: Storage, mishap: Mishap
    ) -> None:
        storage.create(STUDY, {"seed": 7})
        own = [_enter(storage, {}), _enter(storage, {0: mishap}), _enter(storage, {})]
        assert own == [0, 1, 2]
        assert len(storage.drivers(STUDY)) == len(own)


def _enter(storage: Storage, mishaps: dict[int, Mishap]) -> int:
    faulty = FaultyStorage(storage=storage, mishaps=mishaps)
    driver = retry_calls(faulty)
    return driver.enter(STUDY, Driver(host="here", pid=7))


def _dump_storage(storage: Storage) -> dict[str, Any]:
    """Return everything that a storage has of its studies, except the provenance of drivers."""
    return {
        study: (
            list(storage.trials(study)),
            [trial.begun_at for trial in storage.trials(study)],
            storage.finished_order(study),
            storage.asks(study),
            storage.events(study),
            storage.attempts(study),
            storage.reports(study),
            [replace(driver, provenance={}) for driver in storage.drivers(study)],
        )
        for study in storage.studies()
    }


def _report_twice(storage: RetryingStorage) -> None:
    """Store two equal reports, which have to be kept as two."""
    storage.report(STUDY, [_REPORT])
    storage.report(STUDY, [_REPORT])


@dataclass(kw_only=True)
class FaultyStorage:
    """Proxy of a storage that makes chosen calls fail or hang.

    Args:
        storage: the real storage.
        mishaps: kind of failure by call number, counted from 0 without the :data:`UNCOUNTED` calls.
        times: how often in a row such a call fails.
        hang_s: seconds for which a hanging call is delayed; heartbeats fail meanwhile.
    """

    storage: Storage
    mishaps: Mapping[int, Mishap] = field(default_factory=dict)
    times: int = 1
    hang_s: float = 0.0
    calls: list[str] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _left: int = 0
    _mishap: Mishap | None = None
    _hangs: bool = False

    def __getattr__(self, name: str) -> Any:  # every method of the protocol
        method = getattr(self.storage, name)
        if name == "beat" and self._hangs:
            return _fail
        if name in UNCOUNTED:
            return method

        def call(*args: Any, **options: Any) -> Any:
            return self._call(name, method, args, options)

        return call

    def _call(self, name: str, method: Callable[..., Any], args: Any, options: Any) -> Any:
        match self._next(name):
            case "fails":
                raise StorageUnavailableError(f"{name} did not get through")
            case "acts and fails":
                method(*args, **options)
                raise StorageUnavailableError(f"the answer to {name} was lost")
            case "hangs":
                self._hangs = True
                time.sleep(self.hang_s)
                self._hangs = False
            case None:
                pass
        return method(*args, **options)

    def _next(self, name: str) -> Mishap | None:
        """Return the failure of the next call, if any; a failing call fails ``times`` times."""
        with self._lock:
            if self._left:
                self._left -= 1
                return self._mishap
            place = len(self.calls)
            self.calls.append(name)
            self._mishap = self.mishaps.get(place)
            if self._mishap in ("fails", "acts and fails"):
                self._left = self.times - 1
            return self._mishap


def _fail(*_: object) -> None:
    raise StorageUnavailableError("the beat did not get through")
