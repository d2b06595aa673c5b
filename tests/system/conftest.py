"""Places for studies: a file of SQLite, and an empty schema of a PostgreSQL server."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine

POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")

PLACES = [
    "sqlite",
    pytest.param(
        "postgresql",
        marks=pytest.mark.skipif(
            not POSTGRES, reason="PostgreSQL: DSE_TEST_POSTGRES names no database"
        ),
    ),
]


@pytest.fixture(params=PLACES)
def place(request, tmp_path: Path) -> Iterator[str]:
    """The URL of a storage without studies."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/study.db"
        return
    if not POSTGRES:
        pytest.skip("PostgreSQL: DSE_TEST_POSTGRES names no database")
    with _new_schema() as url:
        yield url


@contextmanager
def _new_schema() -> Iterator[str]:
    name = f"dse_test_{uuid4().hex}"
    server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        address = server.url.update_query_dict({"options": f"-csearch_path={name}"})
        yield address.render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    server.dispose()
