"""Schema migrations, which upgrade any older database to the present version."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, inspect, select, text

from dse.errors import StorageError
from dse.storage.sql.checksums_v2 import fill_sums
from dse.storage.sql.codec import DAMAGED
from dse.storage.sql.integrity import check_tables
from dse.storage.sql.tables import meta, studies

Deed = str | Callable[[Connection], None]
"""Migration action: an SQL statement, or a function for changes that need Python."""

STEPS: tuple[tuple[Deed, ...], ...] = (
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
    (
        "ALTER TABLE dse_studies ADD COLUMN sum BIGINT",
        "ALTER TABLE dse_studies ADD COLUMN trials BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_studies ADD COLUMN finished BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_studies ADD COLUMN events BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_studies ADD COLUMN asks BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_studies ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_studies ADD COLUMN reports BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_studies ADD COLUMN drivers BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_studies ADD COLUMN counted BIGINT",
        """
        UPDATE dse_studies SET
            trials = (SELECT COUNT(*) FROM dse_trials WHERE study = dse_studies.id),
            finished = (
                SELECT COUNT(finished_seq) FROM dse_trials WHERE study = dse_studies.id
            ),
            events = (SELECT COUNT(*) FROM dse_events WHERE study = dse_studies.id)
        """,
        "ALTER TABLE dse_trials ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE dse_trials ADD COLUMN worker BIGINT",
        "ALTER TABLE dse_trials ADD COLUMN sum BIGINT",
        "ALTER TABLE dse_events ADD COLUMN sum BIGINT",
        """
        CREATE TABLE dse_asks (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            first BIGINT NOT NULL,
            count BIGINT NOT NULL,
            wanted BIGINT,
            told BIGINT NOT NULL,
            seconds DOUBLE PRECISION NOT NULL,
            "by" TEXT NOT NULL,
            worker BIGINT,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        )
        """,
        """
        CREATE TABLE dse_attempts (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            number BIGINT NOT NULL,
            attempt BIGINT NOT NULL,
            fault TEXT,
            cost_s DOUBLE PRECISION NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        )
        """,
        """
        CREATE TABLE dse_reports (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            number BIGINT NOT NULL,
            attempt BIGINT NOT NULL,
            step BIGINT NOT NULL,
            metrics TEXT NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        )
        """,
        """
        CREATE TABLE dse_drivers (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            host TEXT NOT NULL,
            pid BIGINT NOT NULL,
            started TEXT NOT NULL,
            provenance TEXT NOT NULL,
            beat BIGINT NOT NULL,
            "left" BIGINT NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        )
        """,
        """
        CREATE TABLE dse_pages (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            content {bytes} NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        )
        """,
        fill_sums,
    ),
    (
        """
        CREATE TABLE dse_askers (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            term BIGINT NOT NULL,
            driver BIGINT,
            sum BIGINT,
            PRIMARY KEY (study)
        )
        """,
        """
        CREATE INDEX dse_trials_open ON dse_trials (study, worker, number)
        WHERE finished_seq IS NULL
        """,
        """
        CREATE INDEX dse_drivers_present ON dse_drivers (study) WHERE "left" = 0
        """,
    ),
    (
        "ALTER TABLE dse_trials ADD COLUMN asked_at DOUBLE PRECISION",
        "ALTER TABLE dse_trials ADD COLUMN begun_at DOUBLE PRECISION",
        "ALTER TABLE dse_trials ADD COLUMN finished_at DOUBLE PRECISION",
        "ALTER TABLE dse_attempts ADD COLUMN begun_at DOUBLE PRECISION",
        "ALTER TABLE dse_attempts ADD COLUMN finished_at DOUBLE PRECISION",
    ),
    ("ALTER TABLE dse_reports ADD COLUMN worker BIGINT",),
)
"""Migrations: step n upgrades from version n to n + 1. Released steps must not be changed."""

LATEST = len(STEPS)

_BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA"}


def version(connection: Connection) -> int:
    """Return the schema version of the database; 0 if it has no tables of this program.

    Raises:
        StorageError: the version is newer than this program supports, or damaged.
    """
    tables = inspect(connection).get_table_names()
    if meta.name not in tables:
        if studies.name in tables:
            raise StorageError(f"the table {meta.name} is missing", hint=_mend(connection))
        return 0
    versions = list(connection.execute(select(meta.c.version)).scalars())
    if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
        problem = f"the version of the database is damaged: {versions}"
        raise StorageError(problem, hint=_mend(connection))
    found = versions[0]
    if found > LATEST:
        raise StorageError(
            f"the database has version {found}; this program supports up to {LATEST}",
            hint="upgrade: pip install --upgrade dse-engine",
        )
    return found


def _mend(connection: Connection) -> str:
    """Return a hint on how to repair a damaged schema version in the database.

    If all other tables are intact, it is the SQL statement that restores the version.
    """
    if any(meta.name not in problem for problem in check_tables(connection)):
        return DAMAGED
    statements = (
        f"DROP TABLE IF EXISTS {meta.name}",
        f"CREATE TABLE {meta.name} (version BIGINT NOT NULL)",
        f"INSERT INTO {meta.name} VALUES ({LATEST})",  # noqa: S608 - only shown, of constants
    )
    return f"its tables have version {LATEST}; set it in a copy of it: {'; '.join(statements)}"


def migrate(connection: Connection) -> None:
    """Migrate the database from its schema version to the present one.

    The migrations run in the caller's transaction.
    """
    for step in STEPS[version(connection) :]:
        for deed in step:
            if isinstance(deed, str):
                connection.execute(text(deed.format(bytes=_BYTES[connection.dialect.name])))
            else:
                deed(connection)
        connection.execute(meta.update().values(version=meta.c.version + 1))
