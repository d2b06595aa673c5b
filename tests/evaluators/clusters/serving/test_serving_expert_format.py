"""Routed experts in a format of their own."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.workloads.parameter_count import feed_weights
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

GPT = TRANSFORMERS["gpt-oss-120b"]
PLAN = {"tp": 8, "batch": 16, "weight_format": "bf16"}


def metrics(model="gpt-oss-120b", device="h200-sxm", **plan):
    found = Serving(model=model, device=device).evaluate(Batch.of([{**PLAN, **plan}]))
    assert not found.failures
    return {name: values[0] for name, values in found.columns.items()}


def test_memory_falls_by_the_experts_alone():
    saved = metrics()["weights_memory"] - metrics(expert_bits=4.25)["weights_memory"]
    experts = GPT.layers * GPT.experts * feed_weights(GPT)[0]
    assert saved == pytest.approx(experts * (2.0 - 4.25 / 8) / 8, rel=1e-12)


def test_the_format_of_all_layers_named_for_the_experts_changes_nothing():
    plan = {"model": "minimax-m2", "device": "b200-sxm", "weight_format": "fp8"}
    assert metrics(**plan, expert_format="fp8") == metrics(**plan)
    narrow = {"weight_bits": 4.5, "weight_format": "bf16"}
    assert metrics(**narrow, expert_bits=4.5) == metrics(**narrow)


def test_time_and_energy_lie_between_those_of_the_two_formats():
    plan = {"model": "minimax-m2", "device": "b300-sxm", "batch": 1024}
    wide, mixed, narrow = (
        metrics(**plan, **formats)
        for formats in (
            {},
            {"expert_format": "nvfp4"},
            {"weight_format": "nvfp4"},
        )
    )
    assert narrow["products_time"] < mixed["products_time"] < wide["products_time"]
    assert narrow["compute_energy"] < mixed["compute_energy"] < wide["compute_energy"]


def test_a_device_without_the_experts_format_is_an_infeasible_plan():
    served = Serving(model="gpt-oss-120b", device=None)
    plan = {**PLAN, "device": "h200-sxm", "expert_format": "nvfp4"}
    found = served.evaluate(Batch.of([plan]))
    assert "no units for nvfp4" in found.failures[0].reason


@pytest.mark.parametrize(("name", "value"), [("expert_format", "fp8"), ("expert_bits", 4.5)])
def test_a_model_without_experts_refuses_their_format(name, value):
    with pytest.raises(SpecError, match=f"{name} of a model without experts"):
        Serving(model="llama3-8b").check_values({name: [value]})
