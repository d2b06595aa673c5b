"""Classification of database errors: temporary, refused by the database, or permanent."""

from __future__ import annotations

import sqlite3

from dse.errors import StorageError, StorageRefusedError, StorageUnavailableError

_SQLITE_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_SQLITE_REFUSES = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)

_STATES_AWAY = (
    "08",  # connection exception
    "57P0",  # server or session shutdown, or server startup
    "53200",  # out of memory
    "53300",  # too many connections
    "53400",  # configuration limit exceeded
    "40001",  # serialization failure
    "40P01",  # deadlock
    "55P03",  # lock not available
    "57014",  # query canceled, by a timeout or an administrator
    "25P03",  # timeout of an idle transaction
)
_STATES_REFUSED = (
    "53100",  # disk full
    "25006",  # read-only transaction, as on a standby
    "55000",  # no advisory locks while a standby recovers
    "58030",  # I/O error
)
"""Prefixes of SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html"""

_NEVER_HEALS = ("password", "pg_hba.conf", '" does not exist')
"""Texts of permanent errors while connecting, which have no SQLSTATE."""


def classify(error: object, *, disconnected: bool = False) -> type[StorageError]:
    """Return the StorageError class for an error of a database driver.

    Args:
        error: the exception that the driver raised.
        disconnected: whether the connection was lost.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return _classify_sqlite(code & 0xFF)
    state = getattr(error, "sqlstate", None)
    if state is not None:
        if state.startswith(_STATES_AWAY):
            return StorageUnavailableError
        return StorageRefusedError if state.startswith(_STATES_REFUSED) else StorageError
    lost = disconnected or type(error).__name__ in ("OperationalError", "ConnectionTimeout")
    healing = lost and not any(word in str(error) for word in _NEVER_HEALS)
    return StorageUnavailableError if healing else StorageError


def _classify_sqlite(code: int) -> type[StorageError]:
    """Return the StorageError class for a primary result code of SQLite.

    Source:
        https://www.sqlite.org/rescode.html
    """
    if code in _SQLITE_BUSY:
        return StorageUnavailableError
    return StorageRefusedError if code in _SQLITE_REFUSES else StorageError
