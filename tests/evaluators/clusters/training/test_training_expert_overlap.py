"""All-to-alls of experts that overlap with the computation of another microbatch."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.training.training import Training

PLAN = {"tp": 1, "pp": 4, "dp": 64, "ep": 8, "microbatch": 1, "zero": 1, "recompute": "full"}


def found(plan, **options):
    usual = {"model": "qwen3-30b-a3b", "system": "h100-dgx", "global_batch": 1024}
    return Training(**usual | options).evaluate(Batch.of([PLAN | plan]))


def metrics(plan, **options):
    metrics = found(plan, **options)
    assert not metrics.failures
    return {name: values[0] for name, values in metrics.columns.items()}


def test_hidden_all_to_alls_cost_the_share_of_the_rate_that_they_take():
    exposed, hidden = metrics({}), metrics({"overlap_experts": True}, overlap_tax=0.1)
    assert exposed["expert_time"] < exposed["compute_time"]
    assert hidden["expert_time"] == pytest.approx(0.1 * exposed["expert_time"])
    assert hidden["step_time"] < exposed["step_time"]


def test_all_to_alls_longer_than_the_layer_are_hidden_in_part():
    slow = {"like": "h100-dgx", "network": {"adapters": 1}}
    plan = {"ep": 64, "recompute": "none"}
    exposed, hidden = (
        metrics(plan | {"overlap_experts": flag}, system=slow) for flag in (False, True)
    )
    twice = metrics(plan, system=slow, model={"like": "qwen3-30b-a3b", "layers": 96})
    layers_s = twice["compute_time"] - exposed["compute_time"]  # without the head
    assert hidden["expert_time"] > 0.1 * exposed["expert_time"]
    assert exposed["expert_time"] - hidden["expert_time"] == pytest.approx(layers_s)


def test_one_more_microbatch_is_in_flight():
    exposed, hidden = (
        metrics({"overlap_experts": flag, "recompute": "none"})["activations_memory"]
        for flag in (False, True)
    )
    assert hidden / exposed == pytest.approx(5 / 4, rel=0.05)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ({"ep": 1}, "they must be over 2 devices, not 1"),
        ({"dp": 128, "pp": 1, "microbatch": 8}, "there must be 2, not 1"),
    ],
)
def test_without_experts_elsewhere_or_another_microbatch_nothing_can_overlap(plan, reason):
    failures = found(plan | {"overlap_experts": True}).failures
    assert reason in failures[0].reason
