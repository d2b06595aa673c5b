"""Access to a real PostgreSQL server for tests, named by the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from sqlalchemy import create_engine

POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")
"""URL of a database in which tests may create schemas; empty if not configured."""

needs_postgres = pytest.mark.skipif(
    not POSTGRES, reason="PostgreSQL: DSE_TEST_POSTGRES names no database"
)


@contextmanager
def new_schema() -> Iterator[str]:
    """Create an empty schema on the server, yield its URL, and drop it afterwards."""
    name = f"dse_test_{uuid4().hex}"
    server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        address = server.url.update_query_dict({"options": f"-csearch_path={name}"})
        yield address.render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    server.dispose()
