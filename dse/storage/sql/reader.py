"""Reader of a study in chunks that can skip damaged rows: for exports, salvage and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
from sqlalchemy import ColumnElement, Connection, Table, func, or_, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dse.core.trial import Damage
from dse.core.trials import Trials
from dse.errors import StorageError
from dse.storage.sql import trial_pages as pages
from dse.storage.sql.codec import build_damage_error, parse_json
from dse.storage.sql.entries import ASKS, ATTEMPTS, DRIVERS, EVENTS, REPORTS, RowKind, asker_term
from dse.storage.sql.statements import COUNTS, Study, has_sound_counts, spec_of
from dse.storage.sql.tables import pages as pages_table
from dse.storage.sql.tables import trials as trials_table
from dse.storage.sql.trial_rows import COLUMNS, NOTHING, trials_of

PIECE = 4096
"""Rows per chunk: too few to load pyarrow, which takes 40 MB."""

PARTS: Mapping[str, RowKind[Any]] = {
    one.name: one for one in (DRIVERS, ASKS, ATTEMPTS, REPORTS, EVENTS)
}
"""Records of a study besides its trials, by the name of the part."""

_TABLES: Mapping[str, tuple[Table, ColumnElement[int]]] = {
    "trials": (trials_table, trials_table.c.number),
    **{name: (one.table, one.table.c.seq) for name, one in PARTS.items()},
}
"""Table of each part, and the column that numbers its rows."""

_GONE = ("no such table", "no such column", "does not exist")
"""Texts of errors that concern an entire table."""

_BROKEN = ("malformed", "decode to UTF-8", "no text", "disk I/O", "invalid page", "read block")
"""Texts of errors that concern single rows, so that a smaller chunk may be readable."""

_CHANGED = "not as written: the check sum differs"
_MISSING = "missing"
_ODD = (ValueError, TypeError, KeyError, AttributeError, OverflowError)

Row = Sequence[Any]


def refuse(damage: Damage) -> NoReturn:
    """Raise a StorageError for a damaged row; used where no row may be skipped."""
    raise build_damage_error(damage.study, damage_words(damage))


def damage_words(damage: Damage) -> str:
    """Format a message that states which rows are damaged."""
    numbers = ", ".join(map(str, damage.rows[:8])) + (", ..." if len(damage.rows) > 8 else "")
    noun = damage.part.removesuffix("s") if len(damage.rows) == 1 else damage.part
    return f"{noun} {numbers} {'is' if len(damage.rows) == 1 else 'are'} damaged: {damage.reason}"


class SqlStudyReader:
    """Reader of a study in one transaction, on one snapshot; damage is skipped and reported.

    Args:
        connection: a connection with an open transaction on one snapshot of the database.
        study: the study's name.
        row: the study's row in the table of studies.
        on_damage: called for each damage; it may raise to stop reading.
    """

    def __init__(
        self,
        connection: Connection,
        study: str,
        row: Study,
        on_damage: Callable[[Damage], None],
    ) -> None:
        self._connection = connection
        self._study = study
        self._row, self._id = row, row.id
        self._on_damage = on_damage
        self.spec, problem = spec_of(row)
        if problem:
            self._tell("study", (), problem)
        self.counts = {name: getattr(row, name) for name in COUNTS}
        if not has_sound_counts(row):
            self._tell("study", (), "its counts of rows are damaged")
            self.counts = self._recount()

    def trials(self) -> Iterator[Trials]:
        """Yield the trials in chunks, by number; a damaged row is replaced by its copy in a page.

        Pages are compressed copies of finished trials. A damaged trial without a copy is left out
        and reported.
        """
        for first, end, rows in self._pieces(trials_table, "number", COLUMNS, "trials"):
            found = self._sound_trials(rows)
            lost = np.setdiff1d(np.arange(first, end), found.number)
            if len(lost):
                found = Trials.joined([found, *self._copies(lost)])
                found = found.take(np.argsort(found.number, kind="stable"))
                self._tell_lost("trials", lost.tolist(), rows, found.number.tolist())
            yield found

    def spread_names(self) -> frozenset[str]:
        """Return the metrics of which any trial has a standard error.

        Damaged texts are ignored here; they are detected by the trial's checksum when it is read.
        """
        spread, number = trials_table.c.spread, trials_table.c.number
        wanted = select(spread).where(trials_table.c.study == self._id, spread != NOTHING)
        found = set[str]()
        for first in range(0, self.counts["trials"], PIECE):
            for (text,) in self._rows(wanted, number, first, first + PIECE):
                with suppress(StorageError):
                    named = parse_json(text)
                    found.update(named if isinstance(named, dict) else ())
        return frozenset(found)

    def others(self, part: str) -> Iterator[Any]:
        """Yield the undamaged records of one kind, such as ``events``, in order."""
        kind = PARTS[part]
        for first, end, rows in self._pieces(kind.table, "seq", kind.names, part):
            held = set[int]()
            for row in rows:
                try:
                    value = kind.value(self._study, row)
                except (StorageError, *_ODD):
                    continue
                held.add(row[0])
                yield value
            lost = [place for place in range(first, end) if place not in held]
            if lost:
                self._tell_lost(part, lost, rows, held)

    def check(self) -> Iterator[int]:
        """Read and check every row and page; yield the number of rows after each chunk."""
        self._check_beside()
        for page in self.trials():
            self._check_keys(page)
            yield len(page)
        for part in PARTS:
            count = 0
            for count, _ in enumerate(self.others(part), start=1):
                if count % PIECE == 0:
                    yield PIECE
            yield count % PIECE

    def _pieces(
        self, table: Table, key: str, names: Sequence[str], part: str
    ) -> Iterator[tuple[int, int, Sequence[Row]]]:
        """Yield a table in chunks: first row number, end of the numbers, and the readable rows."""
        wanted = select(*(table.c[name] for name in names)).where(table.c.study == self._id)
        for first in range(0, self.counts[part], PIECE):
            end = min(first + PIECE, self.counts[part])
            yield first, end, self._rows(wanted.order_by(table.c[key]), table.c[key], first, end)

    def _rows(self, wanted: Any, key: ColumnElement[int], first: int, end: int) -> Sequence[Row]:
        """Return the readable rows of a number range; halve an unreadable range down to one row."""
        try:
            with self._connection.begin_nested():
                asked = self._connection.execute(wanted.where(key >= first, key < end))
                return asked.all()
        except (SQLAlchemyError, UnicodeDecodeError) as error:
            words = str(error.orig) if isinstance(error, DBAPIError) else str(error)
            if isinstance(error, UnicodeDecodeError) or any(word in words for word in _BROKEN):
                if end - first == 1:
                    return []
                half = (first + end) // 2
                return [*self._rows(wanted, key, first, half), *self._rows(wanted, key, half, end)]
            if any(word in words for word in _GONE):
                return []
            raise

    def _sound_trials(self, rows: Sequence[Row]) -> Trials:
        try:
            return trials_of(self._study, [rows])
        except StorageError:
            return Trials.joined([found for row in rows for found in self._sound_trial(row)])

    def _sound_trial(self, row: Row) -> Iterator[Trials]:
        try:
            yield trials_of(self._study, [[row]])
        except StorageError:
            return

    def _copies(self, numbers: Any) -> Iterator[Trials]:
        """Yield the copies of these trials in the pages (compressed copies of finished trials)."""
        for page in self._pages():
            yield page.take(np.isin(page.number, numbers))

    def _check_keys(self, page: Trials) -> None:
        """Report trials whose stored design key differs from the key of their design.

        No checksum covers the keys, and no other code reads them.
        """
        key, number = trials_table.c.key, trials_table.c.number
        wanted = select(number, key).where(trials_table.c.study == self._id).order_by(number)
        if len(page):
            first, end = int(page.number[0]), int(page.number[-1]) + 1
            kept = {row[0]: row[1] for row in self._rows(wanted, number, first, end)}
            designs = zip(page.number.tolist(), page.iter_designs(), strict=True)
            odd = [n for n, design in designs if n in kept and kept[n] != design.key]
            if odd:
                self._tell("trials", odd, "the key is not that of the design; nothing else is lost")

    def _check_beside(self) -> None:
        """Check the row of the study's asker, the pages, and that the counts cover all rows."""
        try:
            with self._connection.begin_nested():
                asker_term(self._connection, self._row)
        except (StorageError, SQLAlchemyError):
            self._tell("askers", (), _CHANGED)
        for part, (table, key) in _TABLES.items():
            odd = or_(key < 0, key >= self.counts[part])
            count = self._scalar(select(func.count()).where(table.c.study == self._id, odd))
            if count:
                self._tell(part, (), f"{count} rows that were never counted")
        copies = self._scalar(select(func.count()).where(pages_table.c.study == self._id)) or 0
        sound = sum(1 for _ in self._pages())
        if sound < copies:
            reason = "copies of sound rows; the rows are read instead"
            self._tell("pages", range(sound, copies), reason)

    def _recount(self) -> dict[str, int]:
        """Derive each table's count from its highest row number, as the stored counts are damaged.

        The derived count exceeds the number of existing rows by at most the rows of a chunk, as the
        highest number may itself be damaged.
        """
        found = dict.fromkeys(COUNTS, 0)
        for part, (table, key) in _TABLES.items():
            mine = table.c.study == self._id
            last = self._scalar(select(func.max(key)).where(mine))
            count = self._scalar(select(func.count()).where(mine)) or 0
            if isinstance(last, int):
                found[part] = max(0, min(last + 1, count + PIECE))
        return found

    def _scalar(self, wanted: Any) -> Any:
        """Return the single value of a query; ``None`` if it cannot be read."""
        try:
            with self._connection.begin_nested():
                return self._connection.execute(wanted).scalar_one()
        except (SQLAlchemyError, UnicodeDecodeError):
            return None

    def _pages(self) -> Iterator[Trials]:
        """Yield the undamaged pages (compressed copies of finished trials)."""
        try:
            with self._connection.begin_nested():
                yield from pages.read_pages(self._connection, self._id)
        except (SQLAlchemyError, UnicodeDecodeError):
            return

    def _tell_lost(
        self, part: str, lost: Sequence[int], rows: Sequence[Row], held: Sequence[int] | set[int]
    ) -> None:
        """Report lost rows: as changed if a row with that number was readable, else as missing."""
        there, kept = {row[0] for row in rows}, set(held)
        changed = [place for place in lost if place not in kept and place in there]
        missing = [place for place in lost if place not in kept and place not in there]
        if changed:
            self._tell(part, changed, _CHANGED)
        if missing:
            self._tell(part, missing, _MISSING)

    def _tell(self, part: str, rows: Sequence[int], reason: str) -> None:
        self._on_damage(Damage(study=self._study, part=part, rows=rows, reason=reason))
