"""What a transaction asks and changes of one study: the statements behind ``sql``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, bindparam, insert, select, update

from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Ints
from dse.errors import StorageError
from dse.storage import pages
from dse.storage.codec import DAMAGED, checksum
from dse.storage.laws import check_known, missing
from dse.storage.tables import studies, trials
from dse.storage.trial_columns import trials_of
from dse.storage.trial_rows import COLUMNS, Standing, standing_of
from dse.storage.trial_rows import Row as TrialRow

Study = Row[Any]
"""A row of ``dse_studies``: its id, its name, and how many rows it has elsewhere."""

COUNTS = ("trials", "finished", "events", "asks", "attempts", "reports", "drivers")
_CHUNK = 10_000
"""Numbers per question: SQLite takes no more than 32,766 (https://www.sqlite.org/limits.html)."""


def names(connection: Connection) -> list[str]:
    """All studies, in the order of their creation.

    Raises:
        StorageError: a name is damaged.
    """
    found = list(connection.execute(select(studies.c.name).order_by(studies.c.id)).scalars())
    if not all(isinstance(name, str) for name in found):
        raise StorageError("the name of a study is damaged", hint=DAMAGED)
    return found


def known(connection: Connection, study: str) -> Study:
    """The study of that name.

    Raises:
        StudyError: there is none.
        StorageError: it is damaged.
    """
    wanted = [studies.c[name] for name in ("id", "name", *COUNTS, "counted")]
    found = connection.execute(select(*wanted).where(studies.c.name == study)).one_or_none()
    if found is None:
        raise missing(study, names(connection))
    number, name, *counts, counted = found
    if counted != checksum(number, name, *counts):
        raise StorageError(f"the study {study!r} is damaged", hint=DAMAGED)
    return found


def count(connection: Connection, study: Study, counts: Mapping[str, int]) -> None:
    """Keep how many rows of some kinds there are now."""
    now = {name: counts.get(name, getattr(study, name)) for name in COUNTS}
    total = checksum(study.id, study.name, *now.values())
    connection.execute(update(studies).where(studies.c.id == study.id).values(**now, counted=total))


def put(connection: Connection, study: Study, new: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of new trials."""
    if new:
        connection.execute(insert(trials), [{"study": study.id, **row} for row in new])


def change(connection: Connection, study: Study, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the columns that change of some trials, each with the number it is ``of``."""
    if rows:
        chosen = (trials.c.study == study.id) & (trials.c.number == bindparam("of"))
        changed: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "of"}
        connection.execute(update(trials).where(chosen).values(changed), rows)


def move(connection: Connection, study: Study, standing: Iterable[Standing], **values: Any) -> None:
    """Let trials stand in another way."""
    moved = (one._replace(**values) for one in standing)
    change(connection, study, [{"of": one.number, **one.columns()} for one in moved])


def held(connection: Connection, study: Study, driver: int) -> list[Standing]:
    """The unfinished trials that a driver holds, kept from others until the transaction ends."""
    which = (trials.c.worker == driver) & trials.c.finished_seq.is_(None)
    return [standing_of(row)[0] for row in _rows(connection, study, which, locked=True)]


def standing(
    connection: Connection, study: Study, numbers: Iterable[int]
) -> dict[int, tuple[Standing, bool]]:
    """How trials stand, and whether they are finished, in the order of the numbers.

    They are kept from others until the transaction ends: trials are taken without the study's lock.

    Raises:
        StudyError: a number is unknown.
    """
    asked = list(dict.fromkeys(numbers))
    found: dict[int, tuple[Standing, bool]] = {}
    for chunk in _chunks(asked):
        for row in _rows(connection, study, trials.c.number.in_(chunk), locked=True):
            found[row[0]] = standing_of(row)
    check_known(study.name, asked, {n: State(one.state) for n, (one, _) in found.items()})
    return {number: found[number] for number in asked}


def unfinished(connection: Connection, study: Study, numbers: Iterable[int]) -> dict[int, Standing]:
    """Of these trials the unfinished ones.

    Raises:
        StudyError: a number is unknown.
    """
    found = standing(connection, study, numbers)
    return {number: one for number, (one, finished) in found.items() if not finished}


def numbered(connection: Connection, study: Study, numbers: Iterable[int]) -> list[Trial]:
    """The trials of these numbers, in their order."""
    asked = list(numbers)
    found: dict[int, Trial] = {}
    for chunk in _chunks(asked):
        found |= {t.number: t for t in _trials(connection, study, trials.c.number.in_(chunk))}
    return [found[number] for number in asked]


def everything(connection: Connection, study: Study) -> Trials:
    """All trials: the finished ones by the page, as far as there are pages.

    Raises:
        StorageError: one is damaged or missing.
    """
    whole = list(pages.read(connection, study.id))
    late = _trials(connection, study, trials.c.finished_seq >= pages.PAGE * len(whole))
    waiting = _trials(connection, study, trials.c.finished_seq.is_(None))
    found = Trials.joined([*whole, late, waiting])
    found = found.take(np.argsort(found.number, kind="stable"))
    _check_whole(study, found.number, 0, study.trials)
    _check_whole(study, np.sort(found.ended[found.ended >= 0]), 0, study.finished)
    return found


def added(connection: Connection, study: Study, first: int) -> Trials:
    """The trials from a number on.

    Raises:
        StorageError: one is damaged or missing.
    """
    found = _trials(connection, study, trials.c.number >= first)
    _check_whole(study, found.number, first, study.trials)
    return found


def finished(connection: Connection, study: Study, first: int, most: int | None = None) -> Trials:
    """The finished trials from a place on, in the order in which they were finished.

    Raises:
        StorageError: one is damaged or missing.
    """
    end = study.finished if most is None else min(first + most, study.finished)
    which = (trials.c.finished_seq >= first) & (trials.c.finished_seq < end)
    found = _trials(connection, study, which).finished
    _check_whole(study, found.ended, first, end)
    return found


def turn_pages(connection: Connection, study: Study) -> None:
    """Write the pages whose last trial has finished."""
    for seq in pages.missing(connection, study.id, study.finished):
        page = finished(connection, study, seq * pages.PAGE, pages.PAGE)
        pages.write(connection, study.id, seq, page)


def _trials(connection: Connection, study: Study, which: ColumnElement[bool]) -> Trials:
    return trials_of(_pages(connection, study, which))


def _rows(
    connection: Connection, study: Study, which: ColumnElement[bool], *, locked: bool = False
) -> Iterator[TrialRow]:
    return chain.from_iterable(_pages(connection, study, which, locked=locked))


def _pages(
    connection: Connection, study: Study, which: ColumnElement[bool], *, locked: bool = False
) -> Iterator[Sequence[TrialRow]]:
    """The driver's own rows: those of SQLAlchemy cost a tenth of the time that reading takes."""
    wanted = (
        select(*(trials.c[name] for name in COLUMNS))
        .where(trials.c.study == study.id, which)
        .order_by(trials.c.number)
    )
    found = connection.execute(wanted.with_for_update() if locked else wanted)
    return iter(partial(found.cursor.fetchmany, _CHUNK), [])


def _check_whole(study: Study, places: Ints, first: int, end: int) -> None:
    if not np.array_equal(places, np.arange(min(first, end), end)):
        raise StorageError(f"some trials of {study.name!r} are missing", hint=DAMAGED)


def _chunks(numbers: Iterable[int]) -> Iterator[list[int]]:
    waiting = iter(numbers)
    while chunk := list(islice(waiting, _CHUNK)):
        yield chunk
