"""Database errors that may heal, so that the same call may succeed later."""

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
    "57P0",  # shutdown of the server or of the session, or it is starting
    "53200",  # out of memory
    "53300",  # too many connections
    "53400",  # a configured limit
    "40001",  # serialization failure
    "40P01",  # deadlock
    "55P03",  # a lock was not to be had
    "57014",  # the statement's or the administrator's limit of time
    "25P03",  # the limit of time of a transaction that stands still
)
_STATES_REFUSED = (
    "53100",  # disk full
    "25006",  # a transaction that may only read: a standby
    "55000",  # no advisory lock is to be had while a standby recovers
    "58030",  # input or output failed
)
"""Beginnings of SQLSTATEs: https://www.postgresql.org/docs/current/errcodes-appendix.html"""

_NEVER_HEALS = ("password", "pg_hba.conf", '" does not exist')
"""In errors while connecting, which have no SQLSTATE."""


def classify(error: object, *, disconnected: bool = False) -> type[StorageError]:
    """Return the class of our error for one of a database's driver.

    Args:
        error: what the driver raised.
        disconnected: it has cost the connection.
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
    """Return the class for a primary result code.

    Source:
        https://www.sqlite.org/rescode.html
    """
    if code in _SQLITE_BUSY:
        return StorageUnavailableError
    return StorageRefusedError if code in _SQLITE_REFUSES else StorageError
