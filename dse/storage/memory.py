"""Storage of studies in memory, for the lifetime of the process: for tests and notebooks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from dse.core.design import Design
from dse.core.trial import (
    Ask,
    Asked,
    Attempt,
    Driver,
    Event,
    History,
    News,
    Outcome,
    Queue,
    Report,
    State,
    Take,
    Trial,
)
from dse.core.trials import Trials
from dse.errors import StorageError
from dse.protocols import NEW, PLAIN
from dse.storage.checks import (
    check_finite,
    check_history,
    check_outcomes,
    check_reports,
    check_trials_exist,
    check_trials_open,
    check_turn,
    check_waiting,
    missing,
    no_driver,
    taken,
)
from dse.storage.sql.codec import in_order, parse_json


class MemoryStorage:
    """In-memory storage with all guarantees but durability; threads of a process may share it."""

    def __init__(self, url: str = "memory://") -> None:
        if url != "memory://":
            raise StorageError(f"{url!r} is not the storage in memory", hint="write memory://")
        self._studies: dict[str, _Study] = {}
        self._lock = Lock()

    def create(self, study: str, spec: Mapping[str, Any], history: History = NEW) -> None:
        check_history(history)
        with self._lock:
            if study in self._studies:
                raise taken(study)
            self._studies[study] = _Study(
                spec=in_order(spec),
                trials=[t if t.state.finished else t.freed() for t in history.trials],
                order=list(history.order),
                events=list(history.events),
                asks=list(history.asks),
                attempts=list(history.attempts),
                reports=list(history.reports),
                drivers=[replace(one, id=place) for place, one in enumerate(history.drivers)],
            )

    def spec(self, study: str) -> dict[str, Any] | None:
        found = self._studies.get(study)
        return None if found is None else parse_json(found.spec)

    def studies(self) -> list[str]:
        return list(self._studies)

    def delete(self, study: str) -> None:
        with self._changing(study):
            del self._studies[study]

    def add(self, study: str, designs: Sequence[Design], ask: Ask = PLAIN) -> list[Trial]:
        with self._changing(study) as kept:
            first = len(kept.trials)
            check_turn(study, ask, first, kept.asker, kept.term)
            if ask.releases:
                kept.asker = None
            new = ask.issue(first, designs)
            kept.trials.extend(new)
            kept.open.update(trial.number for trial in new)
            kept.asks.append(ask.kept(first, len(new)))
            kept.events.extend(ask.events)
        return new

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        check_waiting(to)
        with self._changing(study) as kept:
            check_trials_open(study, numbers, kept.states(numbers))
            for number in numbers:
                kept.trials[number] = kept.trials[number].moved(to)

    def claim(
        self, study: str, numbers: Sequence[int], worker: int, lost: Collection[int] = ()
    ) -> list[Trial]:
        with self._changing(study) as kept:
            there = {driver.id for driver in kept.drivers if not driver.left} - set(lost)
            free = [
                n for n in kept.unfinished(study, numbers) if kept.trials[n].worker not in there
            ]
            for number in free:
                kept.trials[number] = kept.trials[number].held(worker)
            return [kept.trials[number] for number in free]

    def begin(self, study: str, begun: Mapping[int, float]) -> None:
        with self._changing(study) as kept:
            for number in kept.unfinished(study, begun):
                kept.trials[number] = replace(kept.trials[number], begun_at=begun[number])

    def finish(
        self,
        study: str,
        outcomes: Mapping[int, Outcome],
        events: Sequence[Event] = (),
        worker: int | None = None,
    ) -> list[int]:
        check_outcomes(outcomes)
        with self._changing(study) as kept:
            numbers = kept.unfinished(study, outcomes)
            for number in numbers:
                kept.trials[number] = kept.trials[number].finished(outcomes[number], worker)
            kept.order.extend(numbers)
            kept.open.difference_update(numbers)
            kept.events.extend(events)
        return numbers

    def retry(self, study: str, outcomes: Mapping[int, Outcome]) -> list[int]:
        for number, outcome in outcomes.items():
            check_finite(number, outcome)
        with self._changing(study) as kept:
            numbers = kept.unfinished(study, outcomes)
            for number in numbers:
                trial, outcome = kept.trials[number], outcomes[number]
                kept.attempts.append(outcome.attempt(number, trial.attempts))
                kept.trials[number] = trial.freed(attempts=1)
        return numbers

    def attempts(self, study: str) -> list[Attempt]:
        return list(self._of(study).attempts)

    def trials(self, study: str) -> Trials:
        with self._changing(study) as kept:
            return Trials.of(kept.trials, kept.order)

    def finished_order(self, study: str) -> list[int]:
        return list(self._of(study).order)

    def since(self, study: str, finished: int, trials: int) -> News:
        with self._changing(study) as kept:
            return News(
                finished=[kept.trials[number] for number in kept.order[finished:]],
                added=kept.trials[trials:],
            )

    def asks(self, study: str) -> list[Asked]:
        return list(self._of(study).asks)

    def record(self, study: str, events: Sequence[Event]) -> None:
        with self._changing(study) as kept:
            kept.events.extend(events)

    def events(self, study: str) -> list[Event]:
        return list(self._of(study).events)

    def report(self, study: str, reports: Sequence[Report]) -> None:
        check_reports(reports)
        with self._changing(study) as kept:
            numbers = [report.number for report in reports]
            check_trials_exist(study, numbers, kept.states(numbers))
            trials = kept.trials
            kept.reports += (one for one in reports if one.attempt >= trials[one.number].attempts)

    def reports(self, study: str, since: int = 0) -> list[Report]:
        return self._of(study).reports[since:]

    def enter(self, study: str, driver: Driver) -> int:
        with self._changing(study) as kept:
            number = len(kept.drivers)
            kept.drivers.append(replace(driver, id=number))
        return number

    def beat(self, study: str, driver: int) -> None:
        with self._changing(study) as kept:
            one = kept.driver(study, driver)
            kept.drivers[driver] = replace(one, beat=one.beat + 1)

    def leave(self, study: str, driver: int) -> None:
        with self._changing(study) as kept:
            kept.drivers[driver] = replace(kept.driver(study, driver), left=True)
            for number in kept.open:
                if kept.trials[number].worker == driver:
                    kept.trials[number] = kept.trials[number].freed()
            if kept.asker == driver:
                kept.asker = None

    def drivers(self, study: str) -> list[Driver]:
        return list(self._of(study).drivers)

    def acquire_asker(self, study: str, driver: int, term: int) -> bool:
        with self._changing(study) as kept:
            kept.driver(study, driver)
            if kept.term == term:
                kept.asker, kept.term = driver, term + 1
            return (kept.asker, kept.term) == (driver, term + 1)

    def release_asker(self, study: str, driver: int, term: int) -> None:
        with self._changing(study) as kept:
            if (kept.asker, kept.term) == (driver, term):
                kept.asker = None

    def take(
        self,
        study: str,
        driver: int,
        count: int,
        *,
        known: Collection[int] = (),
        lost: Collection[int] = (),
        below: int | None = None,
    ) -> Take:
        with self._changing(study) as kept:
            free = kept.free(driver, known, lost, below)[: max(count, 0)] if count > 0 else []
            before = {number: kept.trials[number].worker for number in free}
            for number in free:
                kept.trials[number] = kept.trials[number].held(driver)
            return Take(
                trials=[kept.trials[number] for number in free],
                inherited=frozenset(n for n in free if before[n] in lost),
                queue=kept.queue,
            )

    def close(self) -> None:
        """Do nothing, as there is no connection to close."""

    @contextmanager
    def _changing(self, study: str) -> Iterator[_Study]:
        with self._lock:
            yield self._of(study)

    def _of(self, study: str) -> _Study:
        try:
            return self._studies[study]
        except KeyError:
            raise missing(study, self._studies) from None


@dataclass(slots=True, kw_only=True)
class _Study:
    """State of one study in memory; trials and drivers are stored at the index of their number."""

    spec: str
    trials: list[Trial] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    asks: list[Asked] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    drivers: list[Driver] = field(default_factory=list)
    open: set[int] = field(init=False)
    asker: int | None = None
    term: int = 0

    def __post_init__(self) -> None:
        self.open = {trial.number for trial in self.trials if not trial.state.finished}

    def free(
        self, driver: int, known: Collection[int], lost: Collection[int], below: int | None
    ) -> list[int]:
        """Return the numbers of the unfinished trials that a driver may take, in ascending order.

        Such a trial belongs to no driver, to a driver that has left or is lost, or to this driver
        if its number is not among ``known``, the trials that the driver has received.
        """

        def is_free(number: int) -> bool:
            worker = self.trials[number].worker
            if worker == driver:
                return number not in known
            return worker is None or worker in lost or self.drivers[worker].left

        return [n for n in sorted(self.open) if (below is None or n < below) and is_free(n)]

    @property
    def queue(self) -> Queue:
        held = [worker for n in self.open if (worker := self.trials[n].worker) is not None]
        last = self.asks[-1] if self.asks else Asked(first=0, count=0)
        return Queue(
            waiting=len(self.open) - len(held),
            holders=len(set(held)),
            drivers=sum(not driver.left for driver in self.drivers),
            asker=self.asker,
            term=self.term,
            asked=last.count,
            ask_s=last.seconds,
            trials=len(self.trials),
            finished=len(self.order),
        )

    def states(self, numbers: Iterable[int]) -> dict[int, State | None]:
        return {n: self.trials[n].state for n in numbers if 0 <= n < len(self.trials)}

    def unfinished(self, study: str, numbers: Collection[int]) -> list[int]:
        states = self.states(numbers)
        check_trials_exist(study, numbers, states)
        return [n for n in dict.fromkeys(numbers) if not self.trials[n].state.finished]

    def driver(self, study: str, number: int) -> Driver:
        if not 0 <= number < len(self.drivers):
            raise no_driver(study, number)
        return self.drivers[number]
