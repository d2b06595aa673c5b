"""The tables as the queries speak of them; what makes them is in ``migrations``."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, MetaData, Table, Text

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
)

events = Table(
    "dse_events",
    metadata,
    Column("study", ForeignKey("dse_studies.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("told", BigInteger, nullable=False),
)
