"""Damage of a database as a whole: its tables, the file of SQLite, rows of no study."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, inspect

from dse.storage.sql.tables import metadata

_MOST = 20
"""So many damages of a file are told."""


def check_database(connection: Connection) -> Iterator[str]:
    """Check what is of no single study; each sentence is a damage."""
    yield from check_tables(connection)
    if connection.dialect.name == "sqlite":
        for (told,) in connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST})"):
            if told != "ok":
                yield f"SQLite finds the file damaged: {told}"
        yield from _check_parents(connection)


def check_tables(connection: Connection) -> Iterator[str]:
    """Look for tables and columns that are missing; each sentence is one."""
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
    """Count the rows of each table whose study is not there; a server refuses such rows."""
    found = dict[str, int]()
    for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        found[row[0]] = found.get(row[0], 0) + 1
    for table, count in found.items():
        yield f"{count} rows of {table} belong to no study"
