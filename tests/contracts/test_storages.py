"""Every registered storage keeps the laws of its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dse.protocols import Storage
from dse.registry import names
from dse.testing.durability_contract import DurabilityContract
from dse.testing.outage_contract import OutageContract
from dse.testing.queueing_contract import QueueingContract
from dse.testing.sharing_contract import SharingContract
from dse.testing.storage_contract import StorageContract
from dse.testing.storage_writer import opened
from tests.postgresql_servers import POSTGRES, needs_postgres, new_schema

URLS = {"memory": "memory://", "sqlite": "sqlite:///{folder}/study.db", "postgresql": POSTGRES}

NEEDS = {"postgresql": needs_postgres}


def kinds(chosen: list[str]) -> list[object]:
    return [pytest.param(kind, marks=NEEDS.get(kind, ())) for kind in chosen]


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "postgresql":
            yield stack.enter_context(new_schema())
        else:
            yield URLS[request.param].format(folder=tmp_path)


def test_every_registered_storage_has_a_url() -> None:
    assert set(URLS) == set(names("storages"))


@pytest.mark.parametrize("url", kinds(sorted(URLS)), indirect=True)
class TestEveryStorage(StorageContract):
    @pytest.fixture
    def storage(self, url: str) -> Iterator[Storage]:
        storage = opened(url)
        yield storage
        storage.close()


@pytest.mark.parametrize("url", kinds(sorted(URLS)), indirect=True)
class TestEveryStorageIsShared(SharingContract):
    @pytest.fixture
    def storage(self, url: str) -> Iterator[Storage]:
        storage = opened(url)
        yield storage
        storage.close()


@pytest.mark.parametrize("url", kinds(sorted(URLS)), indirect=True)
class TestEveryStorageQueues(QueueingContract):
    @pytest.fixture
    def storage(self, url: str) -> Iterator[Storage]:
        storage = opened(url)
        yield storage
        storage.close()


@pytest.mark.parametrize("url", kinds(sorted(URLS)), indirect=True)
class TestEveryStorageIsAskedAgain(OutageContract):
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
