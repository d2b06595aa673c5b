"""Writers of one study wait for one another; those of different studies on a server do not."""

from collections.abc import Iterator
from threading import Thread

import pytest

from dse.core.design import Design
from dse.storage.sql.database_storage import SqlStorage
from tests.postgresql_servers import needs_postgres, new_schema

pytestmark = needs_postgres


@pytest.fixture
def storages() -> Iterator[tuple[SqlStorage, SqlStorage]]:
    with new_schema() as url:
        both = SqlStorage(url), SqlStorage(url)
        for study in ("a", "b"):
            both[0].create(study, {})
        yield both
        for one in both:
            one.close()


def add_one(storage: SqlStorage, study: str) -> Thread:
    thread = Thread(target=storage.add, args=(study, [Design({"x": 1})]))
    thread.start()
    return thread


def test_a_writer_of_one_study_does_not_wait_for_that_of_another(storages):
    holder, other = storages
    with holder._database.writing("a"):
        same, another = add_one(other, "a"), add_one(holder, "b")
        another.join(300)
        assert (same.is_alive(), another.is_alive()) == (True, False)
    same.join(300)
    assert [len(holder.trials(study)) for study in ("a", "b")] == [1, 1]
