"""What every evaluator promises, of `compression.retraining`."""

from __future__ import annotations

import functools

import pytest

from dse.core.batch import Batch
from dse_evaluators.compression.retraining.retraining import Retraining

from dse.testing.evaluator_contract import EvaluatorContract  # isort: skip


class TestRetraining(EvaluatorContract):
    @pytest.fixture
    def make(self):
        return functools.partial(Retraining, model="digits-mlp", knobs={"epochs": 1})

    @pytest.fixture
    def batch(self):
        return Batch.of(
            [
                {"method": "masked", "density": 0.1, "alpha": 0.5, "seed": 1},
                {"method": "masked", "density": 0.2, "alpha": 0.0, "seed": 1},
                {"method": "mask", "density": 0.2, "alpha": 0.0, "seed": 1},
            ]
        )
