"""Rows of a study's events, asks, attempts, reports and drivers, and its queue of waiting trials.

The queue's statements also elect the asker: the one driver that may request new designs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    delete,
    distinct,
    func,
    insert,
    or_,
    select,
    update,
)

from dse.core.trial import Asked, Attempt, Driver, Event, Queue, Report, State
from dse.storage.sql import statements
from dse.storage.sql.codec import (
    build_damage_error,
    canonical,
    checksum,
    failure_of,
    failure_text,
    numbers_text,
    parse_json,
)
from dse.storage.sql.statements import Study
from dse.storage.sql.tables import askers, asks, attempts, drivers, events, reports, trials
from dse.storage.sql.trial_rows import COLUMNS, standing_of

T = TypeVar("T")

_FIELDS = {"fault": "failure"}
"""Fields of records that are stored in a column of another name."""

Way = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""Pair of functions that encode a field for the database and decode it."""


@dataclass(frozen=True, kw_only=True)
class RowKind(Generic[T]):
    """Kind of a study's records, such as events: their table, and the conversion to its rows.

    ``kind`` is the class of the records, ``columns`` are the fields of the class that are stored in
    a column of the same name. ``ways`` has pairs of functions that encode and decode fields that
    are neither numbers nor text. ``numbered`` is the field with the row's number, if any. ``late``
    are columns that were added in a later schema version; if all are null in a row, its checksum
    omits them.
    """

    name: str
    noun: str
    kind: type[T]
    table: Table
    columns: tuple[str, ...]
    ways: Mapping[str, Way] = field(default_factory=dict)
    numbered: str = ""
    late: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the database rows that :meth:`value` decodes, in order."""
        return ("seq", *self.columns, *self.late, "sum")

    def append(self, connection: Connection, study: Any, new: Sequence[T]) -> dict[str, int]:
        """Append records to a study, and return how many records of this kind it now has.

        The number is keyed by the name of the column of the study's row that counts these records.
        """
        first: int = getattr(study, self.name)
        if new:
            rows = [self._row(study.id, seq, one) for seq, one in enumerate(new, start=first)]
            connection.execute(insert(self.table), rows)
        return {self.name: first + len(new)}

    def all(self, connection: Connection, study: Any, since: int = 0) -> list[T]:
        """Return the records of a study from number ``since`` on, oldest first.

        Raises:
            StorageError: a row is damaged or missing.
        """
        rows = self._rows(connection, study, self.table.c.seq >= since)
        if [row.seq for row in rows] != list(range(since, getattr(study, self.name))):
            raise build_damage_error(study.name, self._count_words(len(rows) + since, study))
        return [self.value(study.name, row) for row in rows]

    def some(self, connection: Connection, study: Any, places: Iterable[int]) -> list[T]:
        """Return the existing records among those with the given numbers, oldest first.

        Raises:
            StorageError: a row is damaged.
        """
        rows = self._rows(connection, study, self.table.c.seq.in_(sorted(places)))
        return [self.value(study.name, row) for row in rows]

    def put(self, connection: Connection, study: Any, seq: int, one: T) -> None:
        """Replace one stored record of a study, the one with number ``seq``."""
        chosen = (self.table.c.study == study.id) & (self.table.c.seq == seq)
        connection.execute(update(self.table).where(chosen).values(self._row(study.id, seq, one)))

    def _rows(
        self, connection: Connection, study: Any, which: ColumnElement[bool]
    ) -> Sequence[Row[Any]]:
        return connection.execute(
            select(*(self.table.c[name] for name in self.names))
            .where(self.table.c.study == study.id, which)
            .order_by(self.table.c.seq)
        ).all()

    def _count_words(self, found: int, study: Any) -> str:
        return f"there are {found} {self.name} where {getattr(study, self.name)} were written"

    def _row(self, study: int, seq: int, one: T) -> dict[str, Any]:
        values = {name: self._encode_column(name, one) for name in (*self.columns, *self.late)}
        return {"study": study, "seq": seq, **values, "sum": self._sum(seq, *values.values())}

    def _sum(self, *values: Any) -> int:
        """Return the checksum of a row, without the ``late`` columns if all of these are null."""
        before = len(values) - len(self.late)
        return checksum(*(values[:before] if set(values[before:]) <= {None} else values))

    def _encode_column(self, name: str, one: T) -> Any:
        value = getattr(one, _FIELDS.get(name, name))
        return self.ways[name][0](value) if name in self.ways else value

    def value(self, study: str, row: Sequence[Any]) -> T:
        """Decode a database row (number, columns, checksum) to a record, such as an event.

        Raises:
            StorageError: the checksum is wrong.
        """
        seq, *values, kept = row
        if kept != self._sum(seq, *values):
            raise build_damage_error(study, f"{self.noun} {seq} is damaged")
        named = dict(zip((*self.columns, *self.late), values, strict=True))
        converted = {
            _FIELDS.get(name, name): self.ways[name][1](one) if name in self.ways else one
            for name, one in named.items()
        }
        return self.kind(**converted, **({self.numbered: seq} if self.numbered else {}))


EVENTS = RowKind(
    name="events",
    noun="event",
    kind=Event,
    table=events,
    columns=("kind", "text", "told"),
    ways={"text": (canonical, parse_json)},
)
ASKS = RowKind(
    name="asks",
    noun="ask",
    kind=Asked,
    table=asks,
    columns=("first", "count", "wanted", "told", "seconds", "by", "worker"),
    ways={"seconds": (float, float)},
)
ATTEMPTS = RowKind(
    name="attempts",
    noun="attempt",
    kind=Attempt,
    table=attempts,
    columns=("number", "attempt", "fault", "cost_s"),
    ways={"fault": (failure_text, failure_of), "cost_s": (float, float)},
    late=("begun_at", "finished_at"),
)
REPORTS = RowKind(
    name="reports",
    noun="report",
    kind=Report,
    table=reports,
    columns=("number", "attempt", "step", "metrics"),
    ways={"metrics": (numbers_text, parse_json)},
    late=("worker",),
)
DRIVERS = RowKind(
    name="drivers",
    noun="driver",
    kind=Driver,
    table=drivers,
    columns=("host", "pid", "started", "provenance", "beat", "left"),
    ways={"provenance": (canonical, parse_json), "left": (int, bool)},
    numbered="id",
)


class AskerTerm(NamedTuple):
    """Asker of a study, the one driver that may request new designs, and its term's number.

    ``driver`` is ``None`` after the last asker's term has ended.
    """

    driver: int | None = None
    term: int = 0


def asker_term(connection: Connection, study: Study) -> AskerTerm:
    """Return the present asker of a study, if any, and the number of its term.

    Raises:
        StorageError: the row is damaged.
    """
    columns = askers.c.driver, askers.c.term, askers.c.sum
    found = connection.execute(select(*columns).where(askers.c.study == study.id)).one_or_none()
    if found is None:
        return AskerTerm()
    driver, term, kept = found
    if kept != checksum(study.id, term, driver):
        raise build_damage_error(study.name, "its row in dse_askers is damaged")
    return AskerTerm(driver, term)


def appoint(connection: Connection, study: Study, driver: int | None, term: int) -> None:
    """Store which process may request designs for a study, and the number of its term."""
    connection.execute(delete(askers).where(askers.c.study == study.id))
    row = {"study": study.id, "term": term, "driver": driver}
    connection.execute(insert(askers).values(**row, sum=checksum(study.id, term, driver)))


def take(
    connection: Connection,
    study: Study,
    driver: int,
    count: int,
    *,
    known: Collection[int],
    lost: Collection[int],
    below: int | None,
) -> dict[int, int | None]:
    """Assign up to ``count`` trials that no live process holds to a driver (process).

    Rows that another transaction has locked are skipped, without waiting.

    Returns:
        The driver that held each trial before, or ``None``, by the trial's number.
    """
    left = select(drivers.c.seq).where(drivers.c.study == study.id, drivers.c.left != 0)
    mine = (trials.c.worker == driver) & trials.c.number.not_in(list(known))
    which = or_(
        trials.c.worker.is_(None), trials.c.worker.in_(list(lost)), trials.c.worker.in_(left), mine
    )
    rows = connection.execute(
        select(*(trials.c[name] for name in COLUMNS))
        .where(trials.c.study == study.id, trials.c.finished_seq.is_(None), which)
        .where(trials.c.number < (study.trials if below is None else below))
        .order_by(trials.c.number)
        .limit(count)
        .with_for_update(skip_locked=True)
    ).all()
    free = [standing_of(study.name, row)[0] for row in rows]
    statements.move(connection, study, free, state=State.RUNNING.value, worker=driver)
    return {one.number: one.worker for one in free}


def state(connection: Connection, study: Study) -> Queue:
    """Return the state of a study's queue: asker, and numbers of trials and drivers."""
    waiting, holders = connection.execute(
        select(func.count() - func.count(trials.c.worker), func.count(distinct(trials.c.worker)))
        .select_from(trials)
        .where(trials.c.study == study.id, trials.c.finished_seq.is_(None))
    ).one()
    present = select(func.count()).select_from(drivers)
    here = connection.execute(present.where(drivers.c.study == study.id, drivers.c.left == 0))
    driver, term = asker_term(connection, study)
    asks = ASKS.some(connection, study, [study.asks - 1])
    return Queue(
        waiting=waiting,
        holders=holders,
        drivers=here.scalar_one(),
        asker=driver,
        term=term,
        asked=asks[0].count if asks else 0,
        ask_s=asks[0].seconds if asks else 0.0,
        trials=study.trials,
        finished=study.finished,
    )
