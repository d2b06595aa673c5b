"""The stranger's own tests: each plug-in keeps the laws that the engine ships as contracts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from dse_stranger.climb import Climb
from dse_stranger.lone import Lone
from dse_stranger.onefile import OneFile
from dse_stranger.roofline import Roofline

from dse.core.batch import Batch
from dse.core.problem import Problem
from dse.protocols import Evaluator, Executor, Optimizer, Storage, Work
from dse.testing.durability_contract import DurabilityContract
from dse.testing.evaluator_contract import EvaluatorContract
from dse.testing.executor_contract import ExecutorContract
from dse.testing.isolation_contract import IsolationContract
from dse.testing.optimizer_contract import FiniteOptimizerContract
from dse.testing.sharing_contract import SharingContract
from dse.testing.storage_contract import StorageContract


class TestRoofline(EvaluatorContract):
    @pytest.fixture
    def make(self) -> Callable[[], Evaluator]:
        return partial(Roofline, peak=1e13, bandwidth=2e12)

    @pytest.fixture
    def batch(self) -> Batch:
        return Batch.of(
            [
                {"intensity": 0.5, "efficiency": 0.9, "colour": "red"},
                {"intensity": 64.0, "efficiency": 0.5, "colour": "red"},
                {"intensity": 64, "colour": "blue"},
                {"intensity": 0.0, "efficiency": 1.0, "colour": "blue"},
            ]
        )


class TestClimb(FiniteOptimizerContract):
    @pytest.fixture
    def make(self) -> Callable[[Problem], Optimizer]:
        return Climb


class TestLone(ExecutorContract):
    @pytest.fixture
    def make(self) -> Callable[[Work], Executor]:
        return partial(Lone, workers=2)


class TestLoneIsolates(IsolationContract):
    @pytest.fixture
    def make(self) -> Callable[[Work], Executor]:
        return partial(Lone, workers=2)

    @pytest.fixture
    def hasty(self) -> Callable[[Work], Executor]:
        return partial(Lone, workers=2, timeout=2.0)


class TestOneFile(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return OneFile(f"onefile://{tmp_path}/studies.json")


class TestOneFileIsShared(SharingContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return OneFile(f"onefile://{tmp_path}/studies.json")


class TestOneFileSurvives(DurabilityContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"onefile://{tmp_path}/studies.json"
