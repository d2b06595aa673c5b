"""What every evaluator promises, of `compression.post-training`."""

from __future__ import annotations

import functools

import pytest

from dse.core.batch import Batch
from dse_evaluators.compression.post_training import PostTraining

from dse.testing.evaluator_contract import EvaluatorContract  # isort: skip


class TestPostTraining(EvaluatorContract):
    @pytest.fixture
    def make(self):
        return functools.partial(PostTraining, repeats=2, activation_format="int8")

    @pytest.fixture
    def noisy(self):
        return frozenset({"latency"})

    @pytest.fixture
    def batch(self):
        return Batch.of(
            [
                {"weight_format": "int8", "granularity": "tensor", "sparsity": 0.5},
                {"weight_format": "fp8_e4m3", "filter_keep": 0.5, "sparsity": 0},
                {"weight_format": "none", "filter_keep": 0.5, "sparsity": 0},
            ]
        )
