"""Record of a complete study as one value, independent of the storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dse.core.problem import Problem
from dse.core.trial import Asked, Attempt, Driver, Event, Report, Trial
from dse.errors import StorageError, StudyError
from dse.protocols import Storage
from dse.storage.trust import remove_import_mark, without_trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Contents of a study, in the orders in which they were recorded.

    ``trials`` are ordered by number; ``finished_order`` lists the numbers of the finished trials in
    the order in which they finished. Unfinished trials are pending and have no driver. ``about``
    describes names and numbers for readers of the file; the program does not use it.
    """

    study: str
    spec: Mapping[str, Any]
    trials: tuple[Trial, ...] = ()
    finished_order: tuple[int, ...] = ()
    events: tuple[Event, ...] = ()
    asks: tuple[Asked, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    reports: tuple[Report, ...] = ()
    drivers: tuple[Driver, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def finished(self) -> list[Trial]:
        """Finished trials in the order in which they finished."""
        return [self.trials[number] for number in self.finished_order]

    @property
    def count(self) -> int:
        """Number of the study's trials."""
        return len(self.trials)

    def placed_trials(self) -> Iterator[tuple[Trial, int | None]]:
        """Iterate over the trials by number, each with its index in the order of finishing.

        The index is ``None`` for unfinished trials.
        """
        places = {number: place for place, number in enumerate(self.finished_order)}
        return ((trial, places.get(trial.number)) for trial in self.trials)

    def others(self, part: str) -> Iterator[Any]:
        """Iterate over one kind of record: drivers, asks, attempts, reports or events.

        ``part`` is the name of the kind, such as ``drivers``.
        """
        return iter(getattr(self, part))

    @staticmethod
    def of(storage: Storage, study: str) -> Record:
        """Load all records of a stored study.

        Records that other processes add meanwhile are left out. Permission to run the study (trust)
        is not included: it applies to one storage only.

        Raises:
            StudyError: there is no such study.
        """
        spec = storage.spec(study)
        if spec is None:
            raise StudyError(f"there is no study {study!r}")
        trials = tuple(_free(trial) for trial in storage.trials(study))
        order = storage.finished_order(study)
        return Record(
            study=study,
            spec=remove_import_mark(spec),
            trials=trials,
            finished_order=tuple(n for n in order if n < len(trials) and trials[n].state.finished),
            events=without_trust(storage.events(study)),
            asks=tuple(a for a in storage.asks(study) if a.first + a.count <= len(trials)),
            attempts=tuple(a for a in storage.attempts(study) if a.number < len(trials)),
            reports=tuple(r for r in storage.reports(study) if r.number < len(trials)),
            drivers=tuple(replace(driver, left=True) for driver in storage.drivers(study)),
        )


def about(problem: Problem) -> dict[str, Any]:
    """Return the meanings of a study's names, units and goals, for readers of its file."""
    return {
        "objectives": [
            {"expression": o.text, "goal": o.goal, "unit": o.unit} for o in problem.objectives
        ],
        "limits": sorted({limit.text for limit in problem.limits}),
        "metrics": {
            name: {"unit": source.metric.unit, "kind": source.kind, "reads": sorted(source.reads)}
            for name, source in sorted(problem.sources.items())
        },
        "parameters": {
            p.name: {"kind": type(p).__name__.lower(), "unit": p.unit}
            for p in problem.space.parameters
        },
    }


def check_record(record: Record) -> None:
    """Raise StorageError unless the trials, asks, events ... of the record are consistent.

    Raises:
        StorageError: describes the first inconsistency.
    """
    for place, trial in enumerate(record.trials):
        if trial.number != place:
            raise StorageError(f"trial {trial.number} is in the place of trial {place}")
    ended = [trial.number for trial in record.trials if trial.state.finished]
    if sorted(record.finished_order) != ended:
        raise StorageError("the finished trials and the order of their ends do not agree")
    _check_attempts(record)
    _check_asks(record)


def _check_attempts(record: Record) -> None:
    given_up: Counter[int] = Counter()
    numbers = {one.number for one in record.attempts} | {one.number for one in record.reports}
    if numbers and max(numbers) >= len(record.trials):
        raise StorageError(
            f"there is no trial {max(numbers)}, but there are attempts or reports of it"
        )
    for attempt in record.attempts:
        if attempt.attempt != given_up[attempt.number]:
            raise StorageError(f"an attempt of trial {attempt.number} is missing")
        given_up[attempt.number] += 1
    for trial in record.trials:
        if trial.attempts != given_up[trial.number]:
            raise StorageError(f"trial {trial.number} counts {trial.attempts} attempts")


def _check_asks(record: Record) -> None:
    place = 0
    for ask in record.asks:
        if ask.first < place or ask.first + ask.count > len(record.trials):
            raise StorageError(
                f"the ask that begins with trial {ask.first} does not match the trials"
            )
        place = ask.first + ask.count
        if any(trial.told != ask.told for trial in record.trials[ask.first : place]):
            raise StorageError(f"the trials from {ask.first} on do not match their ask")
    for place, driver in enumerate(record.drivers):
        if driver.id != place:
            raise StorageError(f"driver {driver.id} is in the place of driver {place}")


def _free(trial: Trial) -> Trial:
    return trial if trial.state.finished else trial.freed()
