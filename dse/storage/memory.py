"""Studies that live as long as the process: for tests, notebooks and looking around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from dse.core.design import Design
from dse.core.trial import Event, Outcome, State, Trial
from dse.errors import StorageError
from dse.storage.codec import in_order, read
from dse.storage.laws import check_outcomes, check_unfinished, check_waiting, missing, taken


class MemoryStorage:
    """Keeps the laws of a storage but for the disk; threads may share it."""

    def __init__(self, url: str = "memory://") -> None:
        if url != "memory://":
            raise StorageError(f"{url!r} is no storage in memory", hint="it is called memory://")
        self._studies: dict[str, _Study] = {}
        self._lock = Lock()

    def create(self, study: str, spec: Mapping[str, Any]) -> None:
        with self._lock:
            if study in self._studies:
                raise taken(study)
            self._studies[study] = _Study(spec=in_order(spec))

    def spec(self, study: str) -> dict[str, Any] | None:
        found = self._studies.get(study)
        return None if found is None else read(found.spec)

    def studies(self) -> list[str]:
        return list(self._studies)

    def delete(self, study: str) -> None:
        with self._lock:
            self._of(study)
            del self._studies[study]

    def add(self, study: str, designs: Sequence[Design], told: int) -> list[Trial]:
        with self._lock:
            trials = self._of(study).trials
            first = len(trials)
            new = [
                Trial(number=number, design=design, told=told)
                for number, design in enumerate(designs, start=first)
            ]
            trials.extend(new)
        return new

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        check_waiting(to)
        with self._lock:
            kept = self._of(study)
            check_unfinished(study, numbers, kept.states(numbers))
            for number in numbers:
                kept.trials[number] = kept.trials[number].moved(to)

    def finish(self, study: str, outcomes: Mapping[int, Outcome]) -> None:
        check_outcomes(outcomes)
        with self._lock:
            kept = self._of(study)
            check_unfinished(study, outcomes, kept.states(outcomes))
            for number, outcome in outcomes.items():
                kept.trials[number] = kept.trials[number].finished(outcome)
                kept.order.append(number)

    def trials(self, study: str) -> list[Trial]:
        return list(self._of(study).trials)

    def finished_order(self, study: str) -> list[int]:
        return list(self._of(study).order)

    def record(self, study: str, events: Sequence[Event]) -> None:
        self._of(study).events.extend(events)

    def events(self, study: str) -> list[Event]:
        return list(self._of(study).events)

    def close(self) -> None:
        """Nothing is held that would have to be let go."""

    def _of(self, study: str) -> _Study:
        try:
            return self._studies[study]
        except KeyError:
            raise missing(study, self._studies) from None


@dataclass(slots=True, kw_only=True)
class _Study:
    """One study; its place in ``trials`` is a trial's number."""

    spec: str
    trials: list[Trial] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def states(self, numbers: Sequence[int] | Mapping[int, Outcome]) -> dict[int, State | None]:
        return {n: self.trials[n].state for n in numbers if 0 <= n < len(self.trials)}
