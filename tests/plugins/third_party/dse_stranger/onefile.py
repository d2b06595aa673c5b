"""All studies in one file of JSON."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dse.core.design import Design
from dse.core.metric import Fault
from dse.core.trial import Event, Outcome, State, Trial
from dse.errors import StorageError, StudyError, nearest


class OneFile:
    """Rewrites its file at each change, under a lock, and puts it in place at once.

    Args:
        url: ``onefile:///absolute/path.json`` or ``onefile://relative.json``.
    """

    def __init__(self, url: str) -> None:
        self._path = Path(url.partition("://")[2])
        if not self._path.name or not self._path.parent.is_dir():
            raise StorageError(f"{url} is no file in a folder", hint="make the folder first")

    def create(self, study: str, spec: Mapping[str, Any]) -> None:
        with self._changed() as studies:
            if study in studies:
                raise StudyError(f"there is a study {study!r} already")
            studies[study] = {"spec": dict(spec), "trials": [], "finished": [], "events": []}

    def spec(self, study: str) -> dict[str, Any] | None:
        found = self._read().get(study)
        return None if found is None else found["spec"]

    def studies(self) -> list[str]:
        return list(self._read())

    def delete(self, study: str) -> None:
        with self._changed() as studies:
            _of(studies, study)
            del studies[study]

    def add(self, study: str, designs: Sequence[Design], told: int) -> list[Trial]:
        with self._changed() as studies:
            trials = _of(studies, study)["trials"]
            new = [
                Trial(number=len(trials) + place, design=design, told=told)
                for place, design in enumerate(designs)
            ]
            trials += [_written(trial) for trial in new]
        return new

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        if to.finished:
            raise StudyError(f"a trial is not {to} without an outcome")
        with self._changed() as studies:
            for number in numbers:
                _unfinished(_of(studies, study), number)["state"] = to.value

    def finish(self, study: str, outcomes: Mapping[int, Outcome]) -> None:
        with self._changed() as studies:
            record = _of(studies, study)
            for number, outcome in outcomes.items():
                _unfinished(record, number).update(_ended(number, outcome))
                record["finished"].append(number)

    def trials(self, study: str) -> list[Trial]:
        return [_trial(written) for written in _of(self._read(), study)["trials"]]

    def finished_order(self, study: str) -> list[int]:
        return list(_of(self._read(), study)["finished"])

    def record(self, study: str, events: Sequence[Event]) -> None:
        with self._changed() as studies:
            _of(studies, study)["events"] += [asdict(event) for event in events]

    def events(self, study: str) -> list[Event]:
        return [Event(**written) for written in _of(self._read(), study)["events"]]

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


def _unfinished(record: Mapping[str, Any], number: int) -> dict[str, Any]:
    trials = record["trials"]
    if not 0 <= number < len(trials):
        raise StudyError(f"there is no trial {number}")
    if State(trials[number]["state"]).finished:
        raise StudyError(f"trial {number} is {trials[number]['state']} already")
    found: dict[str, Any] = trials[number]
    return found


def _ended(number: int, outcome: Outcome) -> dict[str, Any]:
    if not outcome.state.finished:
        raise StudyError(f"trial {number} cannot end as {outcome.state}")
    for name, value in (*outcome.metrics.items(), *outcome.spread.items()):
        if not math.isfinite(value):
            raise StorageError(f"trial {number}: {name} is {value}")
    return asdict(outcome)


def _written(trial: Trial) -> dict[str, Any]:
    named = ("number", "told", "cost_s", "measured")
    return {
        **{name: getattr(trial, name) for name in named},
        "design": dict(trial.design),
        "state": trial.state.value,
        "metrics": dict(trial.metrics),
        "spread": dict(trial.spread),
        "fault": None,
    }


def _trial(written: Mapping[str, Any]) -> Trial:
    fault = written["fault"]
    return Trial(
        **{
            **written,
            "design": Design(written["design"]),
            "state": State(written["state"]),
            "fault": None if fault is None else Fault(**fault),
        }
    )
