"""SQL statements for the queue of waiting trials, and for the election of its leader."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, delete, distinct, func, insert, or_, select

from dse.core.trial import Queue, State
from dse.storage.sql import statements
from dse.storage.sql.codec import build_damage_error, checksum
from dse.storage.sql.entries import ASKS
from dse.storage.sql.statements import Study
from dse.storage.sql.tables import askers, drivers, trials
from dse.storage.sql.trial_rows import COLUMNS, standing_of


class LeaderTerm(NamedTuple):
    """Leader of a study, the one driver that may request new designs, and its term's number.

    ``driver`` is ``None`` after the last leader's term has ended.
    """

    driver: int | None = None
    term: int = 0


def office(connection: Connection, study: Study) -> LeaderTerm:
    """Return the present leader of a study, if any, and the number of its term of office.

    Raises:
        StorageError: the row is damaged.
    """
    columns = askers.c.driver, askers.c.term, askers.c.sum
    found = connection.execute(select(*columns).where(askers.c.study == study.id)).one_or_none()
    if found is None:
        return LeaderTerm()
    driver, term, kept = found
    if kept != checksum(study.id, term, driver):
        raise build_damage_error(study.name, "its row in dse_askers is damaged")
    return LeaderTerm(driver, term)


def appoint(connection: Connection, study: Study, driver: int | None, term: int) -> None:
    """Store the driver that leads the study (``None``: no driver), and the number of its term."""
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
    """Assign up to ``count`` trials that no driver holds, or a lost one, to the driver.

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
    """Return the state of the study's queue: its leader, and its numbers of trials and drivers."""
    waiting, holders = connection.execute(
        select(func.count() - func.count(trials.c.worker), func.count(distinct(trials.c.worker)))
        .select_from(trials)
        .where(trials.c.study == study.id, trials.c.finished_seq.is_(None))
    ).one()
    present = select(func.count()).select_from(drivers)
    here = connection.execute(present.where(drivers.c.study == study.id, drivers.c.left == 0))
    driver, term = office(connection, study)
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
