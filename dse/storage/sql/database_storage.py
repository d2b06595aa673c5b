"""Storage of studies in a database: an SQLite file or a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, func, insert, select

from dse.core.design import Design
from dse.core.trial import (
    Ask,
    Asked,
    Attempt,
    Damage,
    Driver,
    Event,
    History,
    News,
    Outcome,
    Report,
    State,
    Summary,
    Take,
    Trial,
)
from dse.core.trials import Trials
from dse.protocols import NEW, PLAIN
from dse.storage.checks import (
    check_finite,
    check_history,
    check_outcomes,
    check_reports,
    check_trials_open,
    check_turn,
    check_waiting,
    missing,
    no_driver,
    taken,
)
from dse.storage.sql import entries, statements
from dse.storage.sql.codec import build_damage_error, checksum, in_order
from dse.storage.sql.database import Database
from dse.storage.sql.entries import ASKS, ATTEMPTS, DRIVERS, EVENTS, REPORTS, RowKind, T
from dse.storage.sql.integrity import check_database
from dse.storage.sql.reader import SqlStudyReader, refuse
from dse.storage.sql.statements import COUNTS
from dse.storage.sql.tables import studies
from dse.storage.sql.trial_pages import PAGE
from dse.storage.sql.trial_rows import row_of

_FREE = {"state": State.PENDING.value, "worker": None, "begun_at": None}


class SqlStorage:
    """Storage in an SQL database, which several processes and machines may share.

    Every method runs as one transaction.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or
            ``postgresql+psycopg://user@host/database``.

    Raises:
        StorageError: the database cannot be opened.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    def create(self, study: str, spec: Mapping[str, Any], history: History = NEW) -> None:
        check_history(history)
        text = in_order(spec)
        with self._database.writing() as connection:
            if study in statements.names(connection):
                raise taken(study)
            free = select(func.coalesce(func.max(studies.c.id) + 1, 0))
            number = connection.execute(free).scalar_one()
            row = {"id": number, "name": study, "spec": text, "sum": checksum(number, study, text)}
            counts = dict.fromkeys(statements.COUNTS, 0)
            counts["counted"] = checksum(number, study, *counts.values())
            connection.execute(insert(studies).values(**row, **counts))
            if history is not NEW:
                _fill(connection, statements.require_study(connection, study), history)
                statements.turn_pages(connection, statements.require_study(connection, study))

    def spec(self, study: str) -> dict[str, Any] | None:
        with self._database.reading(study) as connection:
            found = statements.find(connection, study, ("spec", "sum"))
        if found is None:
            return None
        spec, problem = statements.spec_of(found)
        if problem:
            raise build_damage_error(study, problem)
        return spec

    def studies(self) -> list[str]:
        with self._database.reading() as connection:
            return statements.names(connection)

    def summaries(self) -> list[Summary]:
        with self._database.reading() as connection:
            return list(statements.summaries(connection))

    def delete(self, study: str) -> None:
        with self._database.writing(study) as connection:
            found = statements.find(connection, study, ())
            if found is None:
                raise missing(study, statements.names(connection))
            connection.execute(studies.delete().where(studies.c.id == found.id))

    def add(self, study: str, designs: Sequence[Design], ask: Ask = PLAIN) -> list[Trial]:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            turn = entries.asker_term(connection, kept)
            check_turn(study, ask, kept.trials, *turn)
            if ask.releases and turn.driver is not None:
                entries.appoint(connection, kept, None, turn.term)
            new = ask.issue(kept.trials, designs)
            statements.put(connection, kept, [row_of(trial) for trial in new])
            counts = ASKS.append(connection, kept, [ask.kept(kept.trials, len(new))])
            counts |= EVENTS.append(connection, kept, ask.events)
            statements.count(connection, kept, counts | {"trials": kept.trials + len(new)})
        return new

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        check_waiting(to)
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            found = statements.standing(connection, kept, numbers)
            check_trials_open(
                study, numbers, {n: State(one.state) for n, (one, _) in found.items()}
            )
            standing = (one for one, _ in found.values())
            statements.move(connection, kept, standing, state=to.value)

    def claim(
        self, study: str, numbers: Sequence[int], worker: int, lost: Collection[int] = ()
    ) -> list[Trial]:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            found = statements.lock_open_trials(connection, kept, numbers)
            holders = {w for one in found.values() if (w := one.worker) is not None} - set(lost)
            there = {one.id for one in DRIVERS.some(connection, kept, holders) if not one.left}
            free = {number: one for number, one in found.items() if one.worker not in there}
            now = {"state": State.RUNNING.value, "worker": worker}
            statements.move(connection, kept, free.values(), **now)
            return statements.fetch_by_number(connection, kept, free)

    def begin(self, study: str, begun: Mapping[int, float]) -> None:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            found = statements.lock_open_trials(connection, kept, begun)
            timed = [one._replace(begun_at=float(begun[n])) for n, one in found.items()]
            statements.move(connection, kept, timed)

    def finish(
        self,
        study: str,
        outcomes: Mapping[int, Outcome],
        events: Sequence[Event] = (),
        worker: int | None = None,
    ) -> list[int]:
        check_outcomes(outcomes)
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            found = statements.lock_open_trials(connection, kept, outcomes)
            rows = [
                {"of": number, **one.ended(outcomes[number], seq=seq, worker=worker)}
                for seq, (number, one) in enumerate(found.items(), start=kept.finished)
            ]
            statements.change(connection, kept, rows)
            counts = EVENTS.append(connection, kept, events)
            statements.count(connection, kept, counts | {"finished": kept.finished + len(rows)})
            if (kept.finished + len(rows)) // PAGE > kept.finished // PAGE:
                statements.turn_pages(connection, statements.require_study(connection, study))
        return list(found)

    def retry(self, study: str, outcomes: Mapping[int, Outcome]) -> list[int]:
        for number, outcome in outcomes.items():
            check_finite(number, outcome)
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            found = statements.lock_open_trials(connection, kept, outcomes)
            given_up = [outcomes[n].attempt(n, one.attempts) for n, one in found.items()]
            again = (one._replace(attempts=one.attempts + 1) for one in found.values())
            statements.move(connection, kept, again, **_FREE)
            statements.count(connection, kept, ATTEMPTS.append(connection, kept, given_up))
        return list(found)

    def attempts(self, study: str) -> list[Attempt]:
        return self._all(study, ATTEMPTS)

    def trials(self, study: str) -> Trials:
        with self._database.reading(study) as connection:
            kept = statements.require_study(connection, study)
            return statements.everything(connection, kept)

    def finished_order(self, study: str) -> list[int]:
        order: list[int] = self.trials(study).finished.number.tolist()
        return order

    def since(self, study: str, finished: int, trials: int) -> News:
        with self._database.reading(study) as connection:
            kept = statements.require_study(connection, study)
            if not finished and not trials:
                every = statements.everything(connection, kept)
                added = list(every)
                ended = [added[number] for number in every.finished.number.tolist()]
                return News(finished=ended, added=added)
            return News(
                finished=list(statements.fetch_finished_trials(connection, kept, finished)),
                added=list(statements.fetch_from_number(connection, kept, trials)),
            )

    def asks(self, study: str) -> list[Asked]:
        return self._all(study, ASKS)

    def record(self, study: str, events: Sequence[Event]) -> None:
        self._append(study, EVENTS, events)

    def events(self, study: str) -> list[Event]:
        return self._all(study, EVENTS)

    def report(self, study: str, reports: Sequence[Report]) -> None:
        check_reports(reports)
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            found = statements.standing(connection, kept, [report.number for report in reports])
            new = [one for one in reports if one.attempt >= found[one.number][0].attempts]
            statements.count(connection, kept, REPORTS.append(connection, kept, new))

    def reports(self, study: str, since: int = 0) -> list[Report]:
        return self._all(study, REPORTS, since)

    def enter(self, study: str, driver: Driver) -> int:
        return self._append(study, DRIVERS, [driver]) - 1

    def beat(self, study: str, driver: int) -> None:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            one = _driver(connection, kept, driver)
            DRIVERS.put(connection, kept, driver, replace(one, beat=one.beat + 1))

    def leave(self, study: str, driver: int) -> None:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            one = _driver(connection, kept, driver)
            DRIVERS.put(connection, kept, driver, replace(one, left=True))
            held = statements.lock_held_trials(connection, kept, driver)
            statements.move(connection, kept, held, **_FREE)
            turn = entries.asker_term(connection, kept)
            if turn.driver == driver:
                entries.appoint(connection, kept, None, turn.term)

    def drivers(self, study: str) -> list[Driver]:
        return self._all(study, DRIVERS)

    def acquire_asker(self, study: str, driver: int, term: int) -> bool:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            _driver(connection, kept, driver)
            turn = entries.asker_term(connection, kept)
            if turn.term == term:
                entries.appoint(connection, kept, driver, term + 1)
        return turn.term == term or turn == (driver, term + 1)

    def release_asker(self, study: str, driver: int, term: int) -> None:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            if entries.asker_term(connection, kept) == (driver, term):
                entries.appoint(connection, kept, None, term)

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
        opened = self._database.taking if count > 0 else self._database.reading
        with opened(study) as connection:
            kept = statements.require_study(connection, study)
            before: dict[int, int | None] = {}
            if count > 0:
                before = entries.take(
                    connection, kept, driver, count, known=known, lost=lost, below=below
                )
            return Take(
                trials=statements.fetch_by_number(connection, kept, before),
                inherited=frozenset(n for n, one in before.items() if one in lost),
                queue=entries.state(connection, kept),
            )

    @contextmanager
    def reader(
        self, study: str, on_damage: Callable[[Damage], None] | None = None
    ) -> Iterator[SqlStudyReader]:
        with self._database.reading(study) as connection:
            found = statements.find(connection, study, ("spec", "sum", *COUNTS, "counted"))
            if found is None:
                raise missing(study, statements.names(connection))
            yield SqlStudyReader(connection, study, found, on_damage or refuse)

    def check_database(self) -> Iterator[str]:
        with self._database.reading() as connection:
            yield from check_database(connection)

    def close(self) -> None:
        self._database.close()

    def _all(self, study: str, entries: RowKind[T], since: int = 0) -> list[T]:
        with self._database.reading(study) as connection:
            return entries.all(connection, statements.require_study(connection, study), since)

    def _append(self, study: str, entries: RowKind[T], new: Sequence[T]) -> int:
        with self._database.writing(study) as connection:
            kept = statements.require_study(connection, study)
            counts = entries.append(connection, kept, new)
            statements.count(connection, kept, counts)
        return counts[entries.name]


def _fill(connection: Connection, kept: statements.Study, history: History) -> None:
    """Write an imported history (trials, drivers, events) into a new study."""
    places = {number: seq for seq, number in enumerate(history.order)}
    rows = [
        row_of(trial, places[trial.number]) if trial.state.finished else row_of(trial.freed())
        for trial in history.trials
    ]
    statements.put(connection, kept, rows)
    counts = {"trials": len(rows), "finished": len(places)}
    for kind in (EVENTS, ASKS, ATTEMPTS, REPORTS, DRIVERS):
        counts |= kind.append(connection, kept, getattr(history, kind.name))
    statements.count(connection, kept, counts)


def _driver(connection: Connection, kept: statements.Study, number: int) -> Driver:
    found = DRIVERS.some(connection, kept, [number])
    if not found:
        raise no_driver(kept.name, number)
    return found[0]
