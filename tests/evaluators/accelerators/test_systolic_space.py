"""The space of all knobs and the evaluator know the same ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files
from dse_evaluators.accelerators.systolic.systolic import Systolic

SPACE = Path(__file__).parents[3] / "spaces" / "accelerators" / "systolic_full.yaml"


@pytest.fixture(scope="module")
def space():
    return space_of(SPACE, Files())


def test_all_that_the_space_offers_is_read(space):
    evaluator = Systolic(workload="mobilenetv2")
    offered = {parameter.name for parameter in space.parameters}
    assert offered <= evaluator.reads | evaluator.optional


@pytest.mark.parametrize("workload", ["resnet50", "mobilenetv2", "bert-base"])
def test_all_designs_of_the_space_can_exist(space, workload):
    batch = space.sample(2000, np.random.default_rng(7))
    got = Systolic(workload=workload).evaluate(batch)
    assert not got.failures
    assert all(np.isfinite(column).all() for column in got.columns.values())
    assert np.unique(got.columns["bottleneck"]).tolist() == [0.0, 1.0, 2.0]
