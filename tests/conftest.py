"""What all tests share: Hypothesis profiles, by which CI sees the same examples, and one Ray."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from dse.executors.ray_joined import STORE_BYTES, Joined, imported

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

SOON_MISSED = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 2,
}
"""A killed node is known to be dead after seconds and not after half a minute."""


LONGEST = "tests/system/test_readme.py"
"""Minutes of commands in a row, in one test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest goes first, so that no worker waits for it at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.fixture(scope="session")
def ray_nodes() -> Iterator[Any]:
    """A Ray cluster of one node that this process has joined; tests may add nodes to it."""
    imported()  # which settles how Ray behaves
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    cluster.add_node(
        num_cpus=2,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        _system_config=SOON_MISSED,
    )
    joined = Joined(cluster.address, cpus=2)
    yield cluster
    joined.close()
    cluster.shutdown()
