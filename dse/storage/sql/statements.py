"""SQL statements of the storage that read and change one study within a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, insert, select, update

from dse.core.trial import State, Summary, Trial
from dse.core.trials import Trials
from dse.core.values import Ints
from dse.errors import StorageError
from dse.storage.checks import check_trials_exist, missing
from dse.storage.sql import trial_pages as pages
from dse.storage.sql.codec import build_damage_error, checksum, parse_json
from dse.storage.sql.tables import studies, trials
from dse.storage.sql.trial_rows import COLUMNS, TrialStateRow, standing_of, trials_of
from dse.storage.sql.trial_rows import Row as TrialRow

Study = Row[Any]
"""Row of ``dse_studies``: a study's id, name, and numbers of rows in the other tables."""

COUNTS = ("trials", "finished", "events", "asks", "attempts", "reports", "drivers")
_COUNT = (  # built once, as it is executed several times for each trial
    update(studies)
    .where(studies.c.id == bindparam("of"))
    .values({name: bindparam(name) for name in (*COUNTS, "counted")})
)
_TRIALS = select(*(trials.c[name] for name in COLUMNS)).order_by(trials.c.number)
_CHUNK = 10_000
"""Values per query: SQLite accepts at most 32,766 (https://www.sqlite.org/limits.html)."""

_MISCOUNTED = "its counts of rows are damaged"

_SHOWN = 8
"""Maximum number of missing rows that a message lists."""


def names(connection: Connection) -> list[str]:
    """Return the names of all studies by creation; ``#ID`` for a study with a damaged name."""
    found = connection.execute(select(studies.c.id, studies.c.name).order_by(studies.c.id))
    return [name_of(number, name) for number, name in found]


def name_of(number: int, name: object) -> str:
    """Return the name that a study's row holds, or ``#ID`` if the name is damaged."""
    return name if isinstance(name, str) else f"#{number}"


def find(connection: Connection, study: str, columns: Iterable[str]) -> Study | None:
    """Return columns of a study's row without a check for damage; ``None`` without a row."""
    by_name, by_id = _study_queries(tuple(columns))
    found = connection.execute(by_name, {"of": study}).one_or_none()
    if found is None and study[:1] == "#" and study[1:].isdecimal():
        unnamed = connection.execute(by_id, {"of": int(study[1:])}).one_or_none()
        found = None if unnamed is None or isinstance(unnamed.name, str) else unnamed
    return found


@cache
def _study_queries(columns: tuple[str, ...]) -> tuple[Select[Any], Select[Any]]:
    """Return the queries of a study's row by its name and by its id, built once."""
    wanted = select(*(studies.c[name] for name in ("id", "name", *columns)))
    places = (studies.c.name, studies.c.id)
    by_name, by_id = (wanted.where(one == bindparam("of")) for one in places)
    return by_name, by_id


def require_study(connection: Connection, study: str) -> Study:
    """Return a study's row in the table of studies, found by its name.

    Raises:
        StudyError: there is no study of that name.
        StorageError: the row's counts are damaged.
    """
    found = find(connection, study, (*COUNTS, "counted"))
    if found is None:
        raise missing(study, names(connection))
    if not has_sound_counts(found):
        raise build_damage_error(study, _MISCOUNTED)
    return found


def summaries(connection: Connection) -> Iterator[Summary]:
    """Yield a summary of each study, by creation, without reading other tables."""
    columns = ("id", "name", "spec", "sum", *COUNTS, "counted")
    for row in connection.execute(select(*(studies.c[n] for n in columns)).order_by(studies.c.id)):
        spec, problem = spec_of(row)
        sound = has_sound_counts(row)
        yield Summary(
            study=name_of(row.id, row.name),
            spec=spec,
            trials=row.trials if sound else None,
            finished=row.finished if sound else None,
            rows=sum(getattr(row, name) for name in COUNTS if name != "finished") if sound else 0,
            problem=problem or ("" if sound else _MISCOUNTED),
        )


def has_sound_counts(row: Study) -> bool:
    """Return whether the counts in a study's row match their checksum."""
    counts = (getattr(row, name) for name in COUNTS)
    return bool(row.counted == checksum(row.id, row.name, *counts))


def spec_of(row: Study) -> tuple[dict[str, Any], str]:
    """Return the specification in a study's row, and a description of its damage or ``''``."""
    if row.sum != checksum(row.id, row.name, row.spec):
        return {}, "its question is damaged: the check sum of its row differs"
    try:
        spec = parse_json(row.spec)
    except StorageError as error:
        return {}, f"its question is damaged: {error.problem}"
    if not isinstance(spec, dict):
        return {}, "its question is damaged: it is not a JSON object"
    return spec, ""


def count(connection: Connection, study: Study, counts: Mapping[str, int]) -> None:
    """Update the counts of rows, and their checksum, in the study's row of the table of studies."""
    now = {name: counts.get(name, getattr(study, name)) for name in COUNTS}
    total = checksum(study.id, study.name, *now.values())
    connection.execute(_COUNT, {"of": study.id, **now, "counted": total})


def put(connection: Connection, study: Study, new: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows of new trials of a study into the table of trials."""
    if new:
        connection.execute(insert(trials), [{"study": study.id, **row} for row in new])


def change(connection: Connection, study: Study, rows: Sequence[Mapping[str, Any]]) -> None:
    """Update columns of trials; each row has new values and, under ``of``, the trial's number."""
    if rows:
        chosen = (trials.c.study == study.id) & (trials.c.number == bindparam("of"))
        changed: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "of"}
        connection.execute(update(trials).where(chosen).values(changed), rows)


def move(
    connection: Connection, study: Study, standing: Iterable[TrialStateRow], **values: Any
) -> None:
    """Set some columns of unfinished trials to the same values, and update their checksums."""
    moved = (one._replace(**values) for one in standing)
    change(connection, study, [{"of": one.number, **one.columns()} for one in moved])


def lock_held_trials(connection: Connection, study: Study, driver: int) -> list[TrialStateRow]:
    """Return the unfinished trials assigned to a driver, locked until the transaction ends."""
    which = (trials.c.worker == driver) & trials.c.finished_seq.is_(None)
    rows = _rows(connection, study, which, locked=True)
    return [standing_of(study.name, row)[0] for row in rows]


def standing(
    connection: Connection, study: Study, numbers: Iterable[int]
) -> dict[int, tuple[TrialStateRow, bool]]:
    """Return the state of each trial of a study and whether it is finished, and lock the rows.

    The result is in the order of the given numbers. The rows are locked until the transaction ends,
    since ``take`` does not use the study's lock.

    Raises:
        StudyError: a number is unknown.
    """
    asked = list(dict.fromkeys(numbers))
    found: dict[int, tuple[TrialStateRow, bool]] = {}
    for chunk in _chunks(asked):
        for row in _rows(connection, study, trials.c.number.in_(chunk), locked=True):
            found[row[0]] = standing_of(study.name, row)
    check_trials_exist(study.name, asked, {n: State(one.state) for n, (one, _) in found.items()})
    return {number: found[number] for number in asked}


def lock_open_trials(
    connection: Connection, study: Study, numbers: Iterable[int]
) -> dict[int, TrialStateRow]:
    """Return the unfinished trials among these numbers, with locked rows.

    Raises:
        StudyError: a number is unknown.
    """
    found = standing(connection, study, numbers)
    return {number: one for number, (one, finished) in found.items() if not finished}


def fetch_by_number(connection: Connection, study: Study, numbers: Iterable[int]) -> list[Trial]:
    """Return the trials with these numbers, in the same order."""
    asked = list(numbers)
    found: dict[int, Trial] = {}
    for chunk in _chunks(asked):
        found |= {t.number: t for t in _trials(connection, study, trials.c.number.in_(chunk))}
    return [found[number] for number in asked]


def everything(connection: Connection, study: Study) -> Trials:
    """Return all trials of a study, by number; finished ones from compressed pages, if written.

    Raises:
        StorageError: a trial is damaged or missing.
    """
    whole = list(pages.read_pages(connection, study.id))
    late = _trials(connection, study, trials.c.finished_seq >= pages.PAGE * len(whole))
    waiting = _trials(connection, study, trials.c.finished_seq.is_(None))
    found = Trials.joined([*whole, late, waiting])
    found = found.take(np.argsort(found.number, kind="stable"))
    _check_numbers(study, found.number, 0, study.trials)
    _check_places(study, np.sort(found.ended[found.ended >= 0]), 0, study.finished)
    return found


def fetch_from_number(connection: Connection, study: Study, first: int) -> Trials:
    """Return the study's trials from number ``first`` on, in order.

    Raises:
        StorageError: a trial is damaged or missing.
    """
    found = _trials(connection, study, trials.c.number >= first)
    _check_numbers(study, found.number, first, study.trials)
    return found


def fetch_finished_trials(
    connection: Connection, study: Study, first: int, most: int | None = None
) -> Trials:
    """Return up to ``most`` finished trials in the order in which they finished.

    ``first`` is the number of finished trials to skip.

    Raises:
        StorageError: a trial is damaged or missing.
    """
    end = study.finished if most is None else min(first + most, study.finished)
    which = (trials.c.finished_seq >= first) & (trials.c.finished_seq < end)
    found = _trials(connection, study, which).finished
    _check_places(study, found.ended, first, end)
    return found


def turn_pages(connection: Connection, study: Study) -> None:
    """Write the pages (compressed copies of finished trials) that have become complete."""
    for seq in pages.missing(connection, study.id, study.finished):
        page = fetch_finished_trials(connection, study, seq * pages.PAGE, pages.PAGE)
        pages.write(connection, study.id, seq, page)


def _trials(connection: Connection, study: Study, which: ColumnElement[bool]) -> Trials:
    return trials_of(study.name, _pages(connection, study, which))


def _rows(
    connection: Connection, study: Study, which: ColumnElement[bool], *, locked: bool = False
) -> Iterator[TrialRow]:
    return chain.from_iterable(_pages(connection, study, which, locked=locked))


def _pages(
    connection: Connection, study: Study, which: ColumnElement[bool], *, locked: bool = False
) -> Iterator[Sequence[TrialRow]]:
    """Yield the selected trials by number, in chunks of rows as plain tuples.

    Creating SQLAlchemy's row objects would add a tenth to the reading time.
    """
    wanted = _TRIALS.where(trials.c.study == study.id, which)
    found = connection.execute(wanted.with_for_update() if locked else wanted)
    return iter(partial(found.cursor.fetchmany, _CHUNK), [])


def _check_numbers(study: Study, numbers: Ints, first: int, end: int) -> None:
    if not np.array_equal(numbers, np.arange(min(first, end), end)):
        raise build_damage_error(study.name, f"trials {_differing(numbers, first, end)}")


def _check_places(study: Study, places: Ints, first: int, end: int) -> None:
    if not np.array_equal(places, np.arange(min(first, end), end)):
        raise build_damage_error(study.name, f"finished trials {_differing(places, first, end)}")


def _differing(found: Ints, first: int, end: int) -> str:
    """Describe which numbers from ``first`` to ``end`` are missing, or that the count is wrong."""
    lost = np.setdiff1d(np.arange(first, end), found)
    if not len(lost):
        return f"are {first + len(found)} where {end} were written"
    more = ", ..." if len(lost) > _SHOWN else ""
    return f"{', '.join(map(str, lost[:_SHOWN].tolist()))}{more} are missing"


def _chunks(numbers: Iterable[int]) -> Iterator[list[int]]:
    waiting = iter(numbers)
    while chunk := list(islice(waiting, _CHUNK)):
        yield chunk
