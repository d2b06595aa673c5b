"""Studies in a database that outlives the process: a file of SQLite, or a server of PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Column, Connection, bindparam, func, insert, select, update

from dse.core.design import Design
from dse.core.trial import Event, Outcome, State, Trial
from dse.storage.codec import (
    EVENT_COLUMNS,
    TRIAL_COLUMNS,
    event_of,
    in_order,
    read,
    row_of_event,
    row_of_outcome,
    row_of_trial,
    trial_of,
)
from dse.storage.database import Database
from dse.storage.laws import check_outcomes, check_unfinished, check_waiting, missing, taken
from dse.storage.tables import events, studies, trials

_ENDING = ("state", "metrics", "spread", "fault", "cost_s", "measured", "finished_seq")
_CHUNK = 10_000
"""Numbers per question: SQLite takes no more than 32,766 (https://www.sqlite.org/limits.html)."""


class SqlStorage:
    """Every method is one transaction; processes and machines may share the database.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or
            ``postgresql+psycopg://user@host/database``.

    Raises:
        StorageError: it cannot be opened.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    def create(self, study: str, spec: Mapping[str, Any]) -> None:
        text = in_order(spec)
        with self._database.writing() as connection:
            if _id(connection, study) is not None:
                raise taken(study)
            place = connection.execute(_next(studies.c.id)).scalar_one()
            connection.execute(insert(studies).values(id=place, name=study, spec=text))

    def spec(self, study: str) -> dict[str, Any] | None:
        with self._database.reading() as connection:
            text = connection.execute(
                select(studies.c.spec).where(studies.c.name == study)
            ).scalar_one_or_none()
        return None if text is None else read(text)

    def studies(self) -> list[str]:
        with self._database.reading() as connection:
            return _names(connection)

    def delete(self, study: str) -> None:
        with self._database.writing() as connection:
            connection.execute(studies.delete().where(studies.c.id == _known(connection, study)))

    def add(self, study: str, designs: Sequence[Design], told: int) -> list[Trial]:
        with self._database.writing() as connection:
            place = _known(connection, study)
            first = connection.execute(_next(trials.c.number, trials.c.study == place)).scalar_one()
            new = [
                Trial(number=number, design=design, told=told)
                for number, design in enumerate(designs, start=first)
            ]
            if new:
                rows = [{"study": place, **row_of_trial(trial)} for trial in new]
                connection.execute(insert(trials), rows)
        return new

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        check_waiting(to)
        with self._database.writing() as connection:
            place = _known(connection, study)
            check_unfinished(study, numbers, _states(connection, place, numbers))
            for chunk in _chunks(numbers):
                chosen = (trials.c.study == place) & trials.c.number.in_(chunk)
                connection.execute(update(trials).where(chosen).values(state=to.value))

    def finish(self, study: str, outcomes: Mapping[int, Outcome]) -> None:
        check_outcomes(outcomes)
        with self._database.writing() as connection:
            place = _known(connection, study)
            check_unfinished(study, outcomes, _states(connection, place, outcomes))
            if not outcomes:
                return
            first = connection.execute(
                _next(trials.c.finished_seq, trials.c.study == place)
            ).scalar_one()
            rows = [
                {"of": number, "finished_seq": seq, **row_of_outcome(outcome)}
                for seq, (number, outcome) in enumerate(outcomes.items(), start=first)
            ]
            chosen = (trials.c.study == place) & (trials.c.number == bindparam("of"))
            filled: dict[str, Any] = {name: bindparam(name) for name in _ENDING}
            connection.execute(update(trials).where(chosen).values(filled), rows)

    def trials(self, study: str) -> list[Trial]:
        with self._database.reading() as connection:
            rows = connection.execute(
                select(*(trials.c[name] for name in TRIAL_COLUMNS))
                .where(trials.c.study == _known(connection, study))
                .order_by(trials.c.number)
            ).all()
        return [trial_of(row) for row in rows]

    def finished_order(self, study: str) -> list[int]:
        with self._database.reading() as connection:
            found = connection.execute(
                select(trials.c.number)
                .where(trials.c.study == _known(connection, study), trials.c.finished_seq >= 0)
                .order_by(trials.c.finished_seq)
            )
            return list(found.scalars())

    def record(self, study: str, events: Sequence[Event]) -> None:
        if events:
            with self._database.writing() as connection:
                _append(connection, _known(connection, study), events)

    def events(self, study: str) -> list[Event]:
        with self._database.reading() as connection:
            rows = connection.execute(
                select(*(events.c[name] for name in EVENT_COLUMNS))
                .where(events.c.study == _known(connection, study))
                .order_by(events.c.seq)
            ).all()
        return [event_of(row) for row in rows]

    def close(self) -> None:
        self._database.close()


def _append(connection: Connection, place: int, new: Sequence[Event]) -> None:
    first = connection.execute(_next(events.c.seq, events.c.study == place)).scalar_one()
    rows = [
        {"study": place, "seq": seq, **row_of_event(event)}
        for seq, event in enumerate(new, start=first)
    ]
    connection.execute(insert(events), rows)


def _next(column: Column[int], *where: Any) -> Any:  # clauses and statements of SQLAlchemy
    """The question for the first free number in a column."""
    return select(func.coalesce(func.max(column) + 1, 0)).where(*where)


def _id(connection: Connection, study: str) -> int | None:
    return connection.execute(
        select(studies.c.id).where(studies.c.name == study)
    ).scalar_one_or_none()


def _known(connection: Connection, study: str) -> int:
    place = _id(connection, study)
    if place is None:
        raise missing(study, _names(connection))
    return place


def _names(connection: Connection) -> list[str]:
    return list(connection.execute(select(studies.c.name).order_by(studies.c.id)).scalars())


def _states(
    connection: Connection, place: int, numbers: Collection[int]
) -> dict[int, State | None]:
    found: dict[int, State | None] = {}
    for chunk in _chunks(numbers):
        chosen = (trials.c.study == place) & trials.c.number.in_(chunk)
        rows = connection.execute(select(trials.c.number, trials.c.state).where(chosen))
        found |= {number: State(state) for number, state in rows}
    return found


def _chunks(numbers: Collection[int]) -> Iterator[list[int]]:
    waiting = iter(numbers)
    while chunk := list(islice(waiting, _CHUNK)):
        yield chunk
