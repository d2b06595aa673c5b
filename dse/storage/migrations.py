"""The steps that bring any older database to the present form, each taken once and never back."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select, text

from dse.errors import StorageError
from dse.storage.tables import meta

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE dse_meta (version BIGINT NOT NULL)",
        "INSERT INTO dse_meta (version) VALUES (0)",
        """
        CREATE TABLE dse_studies (
            id BIGINT PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            spec TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE dse_trials (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            number BIGINT NOT NULL,
            design TEXT NOT NULL,
            key TEXT NOT NULL,
            told BIGINT NOT NULL,
            state TEXT NOT NULL,
            metrics TEXT NOT NULL,
            spread TEXT NOT NULL,
            fault TEXT,
            cost_s DOUBLE PRECISION NOT NULL,
            measured BIGINT NOT NULL,
            finished_seq BIGINT,
            PRIMARY KEY (study, number)
        )
        """,
        "CREATE UNIQUE INDEX dse_trials_ended ON dse_trials (study, finished_seq)",
        """
        CREATE TABLE dse_events (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            told BIGINT NOT NULL,
            PRIMARY KEY (study, seq)
        )
        """,
    ),
)
"""Step n leads from version n to n + 1. A step that was released is never changed."""

LATEST = len(STEPS)


def version(connection: Connection) -> int:
    """The version of the database; 0 where it holds nothing of ours.

    Raises:
        StorageError: it is newer than this program.
    """
    if not inspect(connection).has_table(meta.name):
        return 0
    found = int(connection.execute(select(meta.c.version)).scalar_one())
    if found > LATEST:
        raise StorageError(
            f"the database has version {found}, and this program knows up to {LATEST}",
            hint="upgrade: pip install --upgrade dse-engine",
        )
    return found


def migrate(connection: Connection) -> None:
    """Take the steps that are missing, in the caller's one transaction."""
    for step in STEPS[version(connection) :]:
        for statement in step:
            connection.execute(text(statement))
        connection.execute(meta.update().values(version=meta.c.version + 1))
