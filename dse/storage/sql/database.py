"""Connections to SQLite or PostgreSQL: a transaction per ``with`` block, with readable errors."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from dse.errors import StorageError, StorageRefusedError, StorageUnavailableError
from dse.storage.address import FORMS, check_address
from dse.storage.sql.codec import salvage_command
from dse.storage.sql.migrations import LATEST, migrate, version
from dse.storage.sql.outages import classify
from dse.system.credentials import HIDDEN, mask_url, take_password

BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for the lock that another writer holds."""
_BUSY_PAUSE_S = 0.005

_LOCK = 0x6473_6521
"""Key of PostgreSQL's advisory lock for all studies: ``dse!`` in ASCII."""
_STUDY_LOCKS = 0x6473_6522
"""First key of PostgreSQL's advisory locks of single studies; the second is the name's hash."""

_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Connection options of libpq, in seconds; ``tcp_user_timeout`` is in milliseconds."""

_SALVAGE = "the file is damaged; take a copy, or salvage it: sqlite3 FILE .recover"
_PRAGMAS = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
)
_HINTS = (
    ("unable to open", "check that it is a file, in a folder where you may write"),
    ("readonly", "you have no write permission there; copy it to another folder"),
    ("not a database", "the file is not a database; choose another name"),
    ("malformed", _SALVAGE),
    ("decode to UTF-8", _SALVAGE),
    ("no such", _SALVAGE),
    ("locked", f"another program has been writing for {BUSY_TIMEOUT_S:g} s; end it or wait"),
    ("full", "make room on the disk"),
    ("connect", "is the server up, and are host, user and password right?"),
)


class Database:
    """SQL database, which is created or migrated to the present schema when it is opened.

    Connections are closed when the object is garbage-collected, as in notebooks that do not call
    :meth:`close`.

    Raises:
        StorageError: the database cannot be opened; the hint describes a fix.
    """

    def __init__(self, url: str) -> None:
        self._url = _parse_storage_url(url)
        self._engine = _engine(self._url)
        weakref.finalize(self, self._engine.dispose)
        try:
            self._prepare()
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def reading(self, study: str | None = None) -> Iterator[Connection]:
        """Open a read transaction on one snapshot of the database; errors name the study."""
        # Not begin(): after reading a damaged page, SQLite refuses even an empty commit.
        with self._translate_errors(study), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, study: str | None = None) -> Iterator[Connection]:
        """Open a transaction with a write lock; its changes are on disk when the block ends.

        Args:
            study: the study to lock, also named in error messages; ``None`` locks all studies.
                SQLite always locks the entire database.
        """
        writer = self._engine.execution_options(dse_writes=True, dse_locks=_lock_of(study))
        with self._translate_errors(study), writer.begin() as connection:
            yield connection

    @contextmanager
    def taking(self, study: str) -> Iterator[Connection]:
        """Open a write transaction that locks only the rows it changes, not the study.

        SQLite has only one writer: its transaction locks the entire database. ``study`` is named in
        error messages.
        """
        writer = self._engine.execution_options(dse_writes=True)
        with self._translate_errors(study), writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _prepare(self) -> None:
        with self.reading() as connection:
            ready = version(connection) == LATEST
        if not ready:
            with self.writing() as connection:
                self._check_ours(connection)
                migrate(connection)

    def _check_ours(self, connection: Connection) -> None:
        tables = inspect(connection).get_table_names()
        server = self._url.get_backend_name() == "postgresql"  # may be shared with others
        if tables and not server and not any(name.startswith("dse_") for name in tables):
            raise StorageError(
                f"{self._url.database} is a database of another program; it contains {tables[0]!r}",
                hint="choose another name",
            )

    @contextmanager
    def _translate_errors(self, study: str | None) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            kind = classify(error.orig, disconnected=error.connection_invalidated)
            if kind is StorageRefusedError:  # file handles from before a remount fail forever
                self._engine.dispose()
            raise _in_our_words(self._url, str(error.orig), study, kind) from error
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            raise _in_our_words(self._url, str(error), study, classify(error)) from error
        except UnicodeDecodeError as error:  # the damaged text was in the driver's message
            raise _in_our_words(self._url, "malformed: a text is no text", study) from error


def _parse_storage_url(url: str) -> URL:
    scheme, sign, _ = url.partition("://")
    kind = scheme.partition("+")[0]
    if not sign:
        problem = f"{mask_url(url)!r} is no URL of a storage"
        raise StorageError(problem, hint=f"write {FORMS}")
    if kind not in ("sqlite", "postgresql"):
        raise StorageError(f"{kind} is no storage", hint=f"write {FORMS}")
    check_address(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the message may contain the password
        raise StorageError(
            f"{mask_url(url)!r} is no URL of a storage", hint=f"write {FORMS}"
        ) from None
    if kind == "sqlite":
        _check_file(parsed)
        return parsed
    if parsed.password is None and "password" not in parsed.query:
        parsed = parsed.set(password=take_password())
    return parsed if "+" in parsed.drivername else parsed.set(drivername="postgresql+psycopg")


def _check_file(url: URL) -> None:
    if not url.database or url.database == ":memory:":
        raise StorageError(f"{url} names no file", hint=f"write {FORMS}; without a file: memory://")
    folder = Path(url.database).absolute().parent
    if not folder.is_dir():
        raise StorageError(
            f"there is no folder {folder} for {Path(url.database).name}",
            hint=f"make it: mkdir -p {folder}",
        )


def _engine(url: URL) -> Engine:
    lite = url.get_backend_name() == "sqlite"
    # Without autocommit the driver begins transactions itself, too late: see ``_begin_sqlite``.
    how = {"isolation_level": None, "timeout": BUSY_TIMEOUT_S} if lite else _connection_options(url)
    try:
        engine = create_engine(url, connect_args=how, pool_pre_ping=not lite)
    except (ImportError, NoSuchModuleError) as error:
        raise StorageError(
            f"the driver for {url.drivername} is missing: {error}",
            hint="pip install 'dse-engine[postgres]'",
        ) from error
    if lite:
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "begin", _begin_postgresql)
    return engine


def _connection_options(url: URL) -> dict[str, Any]:
    """Return the connection options that the URL leaves out.

    They detect an unreachable server within about a minute. Server-side prepared statements are
    disabled: behind a pooler in transaction mode, the next transaction may run on another
    connection.

    Source:
        https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS;
        https://www.psycopg.org/psycopg3/docs/advanced/prepare.html
    """
    options = {name: value for name, value in _CONNECTION.items() if name not in url.query}
    return {**options, "prepare_threshold": None}


def _set_pragmas(connection: Any, _: Any) -> None:  # the driver's own connection
    """Set SQLite's pragmas: readers never wait, commits are durable, untrusted files are safe.

    Source:
        https://www.sqlite.org/pragma.html#pragma_synchronous, FULL in WAL mode;
        https://www.sqlite.org/security.html, the two pragmas for untrusted files.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    for pragma in _PRAGMAS:
        while not _set_pragma(connection, pragma, last=time.monotonic() > deadline):
            time.sleep(_BUSY_PAUSE_S)


def _set_pragma(connection: Any, pragma: str, *, last: bool) -> bool:
    """Set an SQLite pragma; return false if the database is locked, or raise the error on ``last``.

    If two processes switch a new file to WAL mode at the same time, one of them fails immediately,
    because SQLite's own timeout does not apply; the caller repeats the call.

    Source:
        https://www.sqlite.org/c3ref/busy_handler.html, on deadlocks.
    """
    try:
        connection.execute(f"PRAGMA {pragma}").close()
    except sqlite3.OperationalError as error:
        if last or classify(error) is not StorageUnavailableError:
            raise
        return False
    return True


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock first: upgrading a read transaction can fail without waiting.
    writes = connection.get_execution_options().get("dse_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    options = connection.get_execution_options()
    if "dse_locks" in options:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({options['dse_locks']})")
    elif not options.get("dse_writes", False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def _lock_of(study: str | None) -> str:
    """Return the arguments of ``pg_advisory_xact_lock`` for a study, derived from a hash.

    Studies with equal hashes share a lock.
    """
    if study is None:
        return str(_LOCK)
    hashed = crc32(study.encode("utf-8", "surrogatepass"))
    return f"{_STUDY_LOCKS}, {hashed - (hashed >> 31 << 32)}"  # as a signed integer of 32 bits


def _in_our_words(
    url: URL, message: str, study: str | None, kind: type[StorageError] = StorageError
) -> StorageError:
    problem = message.strip().split("\n")[0]
    if url.password:
        problem = problem.replace(str(url.password), HIDDEN)
    hint = next((hint for word, hint in _HINTS if word in problem), "")
    if study and hint == _SALVAGE:
        problem = f"study {study!r}: {problem}"
        hint = f"{hint}; to export the undamaged rows of this study: {salvage_command(study)}"
    place = url.database if url.get_backend_name() == "sqlite" else None
    return kind(problem, where=place or url.render_as_string(hide_password=True), hint=hint)
