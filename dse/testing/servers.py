"""A real PostgreSQL server for tests: the one that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from sqlalchemy import create_engine

POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")
"""The URL of a database in which tests may make schemas."""

needs_postgres = pytest.mark.skipif(
    not POSTGRES, reason="PostgreSQL: DSE_TEST_POSTGRES names no database"
)


@contextmanager
def new_schema() -> Iterator[str]:
    """The URL of an empty schema of the server, which is dropped afterwards."""
    name = f"dse_test_{uuid4().hex}"
    server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        address = server.url.update_query_dict({"options": f"-csearch_path={name}"})
        yield address.render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    server.dispose()
