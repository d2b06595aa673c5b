"""All studies in one file of JSON."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import (
    Ask,
    Asked,
    Attempt,
    Driver,
    Event,
    History,
    News,
    Outcome,
    Report,
    State,
    Trial,
)
from dse.core.trials import Trials
from dse.errors import Overtaken, StorageError, StudyError, nearest
from dse.protocols import NEW, PLAIN

_LISTS = ("events", "asks", "attempts", "reports", "drivers")


class OneFile:
    """Rewrites its file at each change, under a lock, and puts it in place at once.

    Args:
        url: ``onefile:///absolute/path.json`` or ``onefile://relative.json``.
    """

    def __init__(self, url: str) -> None:
        self._path = Path(url.partition("://")[2])
        if not self._path.name or not self._path.parent.is_dir():
            raise StorageError(f"{url} is no file in a folder", hint="make the folder first")

    def create(self, study: str, spec: Mapping[str, Any], history: History = NEW) -> None:
        if [trial.number for trial in history.trials] != list(range(len(history.trials))):
            raise StudyError("the trials have no numbers from 0 on")
        if sorted(history.order) != [t.number for t in history.trials if t.state.finished]:
            raise StudyError("the order is not that of the finished trials")
        with self._changed() as studies:
            if study in studies:
                raise StudyError(f"there is a study {study!r} already")
            trials = [t if t.state.finished else t.freed() for t in history.trials]
            told = {kind: [asdict(one) for one in getattr(history, kind)] for kind in _LISTS}
            for place, driver in enumerate(told["drivers"]):
                driver["id"] = place
            studies[study] = {
                "spec": dict(spec),
                "finished": list(history.order),
                "trials": [_written(trial) for trial in trials],
                **told,
            }

    def spec(self, study: str) -> dict[str, Any] | None:
        found = self._read().get(study)
        return None if found is None else found["spec"]

    def studies(self) -> list[str]:
        return list(self._read())

    def delete(self, study: str) -> None:
        with self._changed() as studies:
            _of(studies, study)
            del studies[study]

    def add(self, study: str, designs: Sequence[Design], ask: Ask = PLAIN) -> list[Trial]:
        with self._changed() as studies:
            record = _of(studies, study)
            first = len(record["trials"])
            if ask.after not in (None, first):
                raise Overtaken(f"the study has {first} trials", hint="look at them, ask again")
            new = [
                Trial(number=first + place, design=design, told=ask.told, asked_at=ask.at)
                for place, design in enumerate(designs)
            ]
            if ask.worker is not None:
                new = [trial.held(ask.worker) for trial in new]
            record["trials"] += [_written(trial) for trial in new]
            record["asks"].append(asdict(ask.kept(first, len(new))))
            record["events"] += [asdict(event) for event in ask.events]
        return new

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        if to.finished:
            raise StudyError(f"a trial is not {to} without an outcome")
        with self._changed() as studies:
            record = _of(studies, study)
            for number in numbers:
                if number not in _open(record, [number]):
                    raise StudyError(
                        f"trial {number} is {record['trials'][number]['state']} already"
                    )
                record["trials"][number]["state"] = to.value

    def claim(
        self, study: str, numbers: Sequence[int], worker: int, lost: Collection[int] = ()
    ) -> list[Trial]:
        with self._changed() as studies:
            record = _of(studies, study)
            there = {one["id"] for one in record["drivers"] if not one["left"]} - set(lost)
            free = {
                number: trial
                for number, trial in _open(record, numbers).items()
                if trial["worker"] not in there
            }
            for trial in free.values():
                trial.update(state=State.RUNNING.value, worker=worker)
            return [_trial(trial) for trial in free.values()]

    def begin(self, study: str, begun: Mapping[int, float]) -> None:
        with self._changed() as studies:
            for number, trial in _open(_of(studies, study), begun).items():
                trial["begun_at"] = begun[number]

    def finish(
        self,
        study: str,
        outcomes: Mapping[int, Outcome],
        events: Sequence[Event] = (),
        worker: int | None = None,
    ) -> list[int]:
        with self._changed() as studies:
            record = _of(studies, study)
            for number, outcome in outcomes.items():
                _check_outcome(number, outcome)
            taken = _open(record, outcomes)
            for number, trial in taken.items():
                holder = trial["worker"] if worker is None else worker
                trial.update(_written(_trial(trial).finished(outcomes[number], holder)))
            record["finished"] += taken
            record["events"] += [asdict(event) for event in events]
        return list(taken)

    def retry(self, study: str, outcomes: Mapping[int, Outcome]) -> list[int]:
        with self._changed() as studies:
            record = _of(studies, study)
            taken = _open(record, outcomes)
            for number, trial in taken.items():
                attempt = outcomes[number].attempt(number, trial["attempts"])
                begun_at = trial["begun_at"] if attempt.begun_at is None else attempt.begun_at
                record["attempts"].append(asdict(replace(attempt, begun_at=begun_at)))
                trial.update(_written(_trial(trial).freed(attempts=1)))
        return list(taken)

    def attempts(self, study: str) -> list[Attempt]:
        written = _of(self._read(), study)["attempts"]
        return [Attempt(**{**one, "failure": _failure(one["failure"])}) for one in written]

    def trials(self, study: str) -> Trials:
        record = _of(self._read(), study)
        return Trials.of([_trial(written) for written in record["trials"]], record["finished"])

    def finished_order(self, study: str) -> list[int]:
        return list(_of(self._read(), study)["finished"])

    def since(self, study: str, finished: int, trials: int) -> News:
        record = _of(self._read(), study)
        every = [_trial(written) for written in record["trials"]]
        ended = [every[number] for number in record["finished"][finished:]]
        return News(finished=ended, added=every[trials:])

    def asks(self, study: str) -> list[Asked]:
        return [Asked(**written) for written in _of(self._read(), study)["asks"]]

    def record(self, study: str, events: Sequence[Event]) -> None:
        with self._changed() as studies:
            _of(studies, study)["events"] += [asdict(event) for event in events]

    def events(self, study: str) -> list[Event]:
        return [Event(**written) for written in _of(self._read(), study)["events"]]

    def report(self, study: str, reports: Sequence[Report]) -> None:
        with self._changed() as studies:
            record = _of(studies, study)
            trials = _open(record, [report.number for report in reports])
            for report in reports:
                _check(report.number, report.metrics)
            record["reports"] += [
                asdict(one)
                for one in reports
                if one.number in trials and one.attempt >= trials[one.number]["attempts"]
            ]

    def reports(self, study: str, since: int = 0) -> list[Report]:
        return [Report(**written) for written in _of(self._read(), study)["reports"][since:]]

    def enter(self, study: str, driver: Driver) -> int:
        with self._changed() as studies:
            drivers = _of(studies, study)["drivers"]
            drivers.append({**asdict(driver), "id": len(drivers)})
        return len(drivers) - 1

    def beat(self, study: str, driver: int) -> None:
        with self._changed() as studies:
            _driver(_of(studies, study), driver)["beat"] += 1

    def leave(self, study: str, driver: int) -> None:
        with self._changed() as studies:
            record = _of(studies, study)
            _driver(record, driver)["left"] = True
            for trial in _open(record, range(len(record["trials"]))).values():
                if trial["worker"] == driver:
                    trial.update(_written(_trial(trial).freed()))

    def drivers(self, study: str) -> list[Driver]:
        return [Driver(**written) for written in _of(self._read(), study)["drivers"]]

    def close(self) -> None:
        """Nothing is held between calls."""

    def _read(self) -> dict[str, Any]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Any]]:
        """The studies, to be changed; they are on disk at the end, or untouched after an error."""
        with Path(f"{self._path}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            studies = self._read()
            yield studies
            new = Path(f"{self._path}.new")
            with new.open("w") as file:
                json.dump(studies, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


def _of(studies: Mapping[str, Any], study: str) -> Any:
    if study not in studies:
        raise StudyError(f"there is no study {study!r}", hint=nearest(study, studies))
    return studies[study]


def _open(record: Mapping[str, Any], numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Of the trials of these numbers those that are not finished."""
    trials = record["trials"]
    asked = list(dict.fromkeys(numbers))
    for number in asked:
        if not 0 <= number < len(trials):
            raise StudyError(f"there is no trial {number}")
    return {n: trials[n] for n in asked if not State(trials[n]["state"]).finished}


def _driver(record: Mapping[str, Any], number: int) -> dict[str, Any]:
    if not 0 <= number < len(record["drivers"]):
        raise StudyError(f"no driver {number} ever entered")
    found: dict[str, Any] = record["drivers"][number]
    return found


def _check_outcome(number: int, outcome: Outcome) -> None:
    if not outcome.state.finished:
        raise StudyError(f"trial {number} cannot end as {outcome.state}")
    _check(number, {**outcome.metrics, **outcome.spread})


def _check(number: int, told: Mapping[str, float]) -> None:
    for name, value in told.items():
        if not math.isfinite(value):
            raise StorageError(f"trial {number}: {name} is {value}")


def _written(trial: Trial) -> dict[str, Any]:
    named = ("number", "told", "cost_s", "measured", "attempts", "worker")
    named += ("asked_at", "begun_at", "finished_at")
    return {
        **{name: getattr(trial, name) for name in named},
        "design": dict(trial.design),
        "state": trial.state.value,
        "metrics": dict(trial.metrics),
        "spread": dict(trial.spread),
        "failure": None if trial.failure is None else asdict(trial.failure),
    }


def _trial(written: Mapping[str, Any]) -> Trial:
    return Trial(
        **{
            **written,
            "design": Design(written["design"]),
            "state": State(written["state"]),
            "failure": _failure(written["failure"]),
        }
    )


def _failure(written: Mapping[str, str] | None) -> Failure | None:
    return None if written is None else Failure(**written)
