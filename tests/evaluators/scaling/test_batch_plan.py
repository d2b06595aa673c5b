"""Updates of a training whose batches grow, counted for many plans at once and one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.scaling.recipes.batch_plan import BatchPlan
from dse_evaluators.scaling.recipes.batch_schedule import BatchSchedule

ADABATCH = [(128, 1, 39_000), (128, 2, 15_080), (2048, 1, 2_400)]
"""Batch, growth and updates: 50,000 images, 100 epochs, doubled every 20; counted by hand."""


@pytest.mark.parametrize(("batch", "growth", "updates"), ADABATCH)
def test_updates_of_adabatch(batch, growth, updates):
    plan = BatchPlan(examples=50_000, epochs=100, interval=20)
    found = plan.evaluate(Batch.of([{"batch": batch, "batch_growth": growth}])).columns
    assert found["updates"] == [updates]


def test_fewer_updates_of_equal_time_bound_the_speedup():
    plan = BatchPlan(examples=50_000, epochs=100, interval=20, batch=128, rate_decay=0.75)
    found = plan.evaluate(Batch.of([{"batch_growth": 2}])).columns
    assert found["update_ratio"] == pytest.approx(2.59, abs=0.005)
    assert (found["largest_batch"], found["effective_decay"]) == ([2048], [0.375])


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "examples": st.integers(1, 5000),
                "epochs": st.integers(1, 60),
                "batch": st.integers(1, 6000),
                "batch_growth": st.integers(1, 9),
                "interval": st.integers(1, 70),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
def test_many_plans_are_counted_like_the_batches_of_a_training(plans):
    found = BatchPlan().evaluate(Batch.of(plans)).columns
    ours = [
        BatchSchedule(
            examples=p["examples"],
            epochs=p["epochs"],
            batch=p["batch"],
            growth=p["batch_growth"],
            interval=p["interval"],
        )
        for p in plans
    ]
    assert found["updates"].tolist() == [one.updates for one in ours]
    assert found["largest_batch"].tolist() == [one.size(one.epochs - 1) for one in ours]
    assert np.all(found["update_ratio"] >= 1)
