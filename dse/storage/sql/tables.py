"""SQLAlchemy definitions of the tables, for queries; ``migrations`` creates the tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, LargeBinary, MetaData, Table, Text

metadata = MetaData()

meta = Table(
    "dse_meta",
    metadata,
    Column("version", BigInteger, nullable=False),
)

studies = Table(
    "dse_studies",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("name", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("sum", BigInteger),
    # Number of the study's rows in the other tables, and the checksum of these numbers.
    Column("trials", BigInteger, nullable=False),
    Column("finished", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("asks", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("reports", BigInteger, nullable=False),
    Column("drivers", BigInteger, nullable=False),
    Column("counted", BigInteger),
)

trials = Table(
    "dse_trials",
    metadata,
    Column("study", ForeignKey("dse_studies.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("design", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("told", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("metrics", Text, nullable=False),
    Column("spread", Text, nullable=False),
    Column("fault", Text),
    Column("cost_s", Double, nullable=False),
    Column("measured", BigInteger, nullable=False),
    Column("finished_seq", BigInteger),
    Column("attempts", BigInteger, nullable=False),
    Column("worker", BigInteger),
    Column("sum", BigInteger),
    # Wall clock, in seconds since 1970 (UTC); NULL where it was not recorded.
    Column("asked_at", Double),
    Column("begun_at", Double),
    Column("finished_at", Double),
)


def _rows(name: str, *columns: Column[object]) -> Table:
    """Define a table whose rows are numbered from 0 in each study and have a checksum each."""
    return Table(
        name,
        metadata,
        Column("study", ForeignKey("dse_studies.id"), primary_key=True),
        Column("seq", BigInteger, primary_key=True),
        *columns,
        Column("sum", BigInteger),
    )


events = _rows(
    "dse_events",
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("told", BigInteger, nullable=False),
)

asks = _rows(
    "dse_asks",
    Column("first", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("wanted", BigInteger),
    Column("told", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("by", Text, nullable=False),
    Column("worker", BigInteger),
)

attempts = _rows(
    "dse_attempts",
    Column("number", BigInteger, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("fault", Text),
    Column("cost_s", Double, nullable=False),
    Column("begun_at", Double),
    Column("finished_at", Double),
)

reports = _rows(
    "dse_reports",
    Column("number", BigInteger, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("metrics", Text, nullable=False),
    Column("worker", BigInteger),
)

pages = _rows("dse_pages", Column("content", LargeBinary, nullable=False))

drivers = _rows(
    "dse_drivers",
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started", Text, nullable=False),
    Column("provenance", Text, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("left", BigInteger, nullable=False),
)

askers = Table(
    "dse_askers",
    metadata,
    Column("study", ForeignKey("dse_studies.id"), primary_key=True),
    Column("term", BigInteger, nullable=False),
    Column("driver", BigInteger),
    Column("sum", BigInteger),
)
