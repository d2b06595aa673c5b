"""Every registered storage keeps the laws of its protocol."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine

from dse.protocols import Storage
from dse.registry import names
from dse.testing.durability_contract import DurabilityContract
from dse.testing.storage_contract import StorageContract
from dse.testing.storage_writer import opened

POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")
"""The URL of a database in which the tests may make schemas."""

URLS = {"memory": "memory://", "sqlite": "sqlite:///{folder}/study.db", "postgresql": POSTGRES}

NEEDS = {
    "postgresql": pytest.mark.skipif(
        not POSTGRES, reason="PostgreSQL: DSE_TEST_POSTGRES names no database"
    )
}


def kinds(chosen: list[str]) -> list[object]:
    return [pytest.param(kind, marks=NEEDS.get(kind, ())) for kind in chosen]


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "postgresql":
            yield stack.enter_context(new_schema())
        else:
            yield URLS[request.param].format(folder=tmp_path)


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


def test_every_registered_storage_has_a_url() -> None:
    assert set(URLS) == set(names("storages"))


@pytest.mark.parametrize("url", kinds(sorted(URLS)), indirect=True)
class TestEveryStorage(StorageContract):
    @pytest.fixture
    def storage(self, url: str) -> Iterator[Storage]:
        storage = opened(url)
        yield storage
        storage.close()


@pytest.mark.slow
@pytest.mark.parametrize("url", kinds(["sqlite", "postgresql"]), indirect=True)
class TestEveryDatabase(DurabilityContract):
    @pytest.fixture
    def url(self, url: str) -> str:
        return url
