"""Every registered executor keeps the laws of its protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from dse.protocols import Executor, Work
from dse.registry import load, names
from dse.testing.executor_contract import ExecutorContract
from dse.testing.isolation_contract import IsolationContract

OPTIONS: Mapping[str, Mapping[str, object]] = {
    "serial": {"batch": 4},
    "processes": {"workers": 2},
    "ray": {"workers": 2},
}
HASTE_S = 2.0
"""After which an executor gives up a task that may hang."""

WITHIN = ("serial",)
"""Executors that work in the driver's process, and crash with it."""

CLUSTERS = {"ray": ("ray_nodes",)}
"""Fixtures that start what an executor's workers run on: one for all tests."""

MARKS = {"ray": pytest.mark.slow}


def test_every_registered_executor_has_options() -> None:
    assert set(OPTIONS) == set(names("executors"))


@pytest.fixture
def make(name: str, request: pytest.FixtureRequest) -> Callable[[Work], Executor]:
    for cluster in CLUSTERS.get(name, ()):
        request.getfixturevalue(cluster)
    return partial(load("executors", name), **OPTIONS[name])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, ())) for name in sorted(OPTIONS)]
)
class TestEveryExecutor(ExecutorContract):
    @pytest.fixture
    def make(self, make: Callable[[Work], Executor]) -> Callable[[Work], Executor]:
        return make


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - set(WITHIN)))
class TestEveryIsolatedExecutor(IsolationContract):
    @pytest.fixture
    def make(self, make: Callable[[Work], Executor]) -> Callable[[Work], Executor]:
        return make

    @pytest.fixture
    def hasty(self, make: Callable[[Work], Executor]) -> Callable[[Work], Executor]:
        return partial(make, timeout_s=HASTE_S)
