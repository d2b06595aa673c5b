"""Integrity checks of an entire database: its tables, the SQLite file, and orphaned rows."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, inspect

from dse.storage.sql.tables import metadata

_MOST = 20
"""Maximum number of problems that SQLite reports for a file."""


def check_database(connection: Connection) -> Iterator[str]:
    """Yield a description of each damage that does not belong to a single study."""
    yield from check_tables(connection)
    if connection.dialect.name == "sqlite":
        for (message,) in connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST})"):
            if message != "ok":
                yield f"SQLite finds the file damaged: {message}"
        yield from _check_parents(connection)


def check_tables(connection: Connection) -> Iterator[str]:
    """Check the database schema; yield a description of each missing table and column."""
    looked = inspect(connection)
    there = set(looked.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in there:
            yield f"the table {table.name} is missing"
            continue
        held = {column["name"] for column in looked.get_columns(table.name)}
        for column in table.c:
            if column.name not in held:
                yield f"the column {column.name} of {table.name} is missing"


def _check_parents(connection: Connection) -> Iterator[str]:
    """Yield, for each table with rows that belong to no study, a line with their number.

    PostgreSQL does not accept such rows, so only SQLite is checked.
    """
    found = dict[str, int]()
    for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        found[row[0]] = found.get(row[0], 0) + 1
    for table, count in found.items():
        yield f"{count} rows of {table} belong to no study"
