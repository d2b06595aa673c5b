"""Formats of experts and of stored weights in the simulator are those of the closed form."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.simulator.serving_simulator import ServingSimulator

ALONE = {"isl": 1000, "osl": 50}


@pytest.mark.parametrize(
    "formats",
    [
        {"expert_format": "mxfp4"},
        {"expert_format": "nvfp4", "weight_format": "fp8"},
        {"weight_format": "awq_int4"},
        {"weight_bits": 6.0, "expert_bits": 4.25, "kv_bits": 4.0},
    ],
)
def test_a_request_alone_is_served_as_the_closed_form_says(formats):
    options = {"model": "gpt-oss-120b", "device": "b200-sxm"}
    plan = {"tp": 8, **formats}
    found = ServingSimulator(**options, **ALONE, requests=1).evaluate(
        Batch.of([{**plan, "rate": 1.0, "max_num_seqs": 1}])
    )
    want = Serving(**options, **ALONE).evaluate(Batch.of([{**plan, "batch": 1}]))
    assert not found.failures
    for name in ("ttft", "weights_memory"):
        assert found.columns[name] == pytest.approx(want.columns[name], rel=1e-12)
    assert found.columns["extrapolated"] == want.columns["extrapolated"]


def test_energy_of_experts_is_that_of_their_format():
    options = {"model": "minimax-m2", "device": "b300-sxm", **ALONE, "requests": 1}
    plan = {"tp": 8, "rate": 1.0, "max_num_seqs": 1}
    formats = ({}, {"expert_format": "nvfp4"}, {"weight_format": "nvfp4"})
    found = ServingSimulator(**options).evaluate(Batch.of([plan | one for one in formats]))
    wide, mixed, narrow = found.columns["energy_per_token"]
    assert narrow < mixed < wide


@pytest.mark.parametrize(("name", "value"), [("expert_format", "fp8"), ("expert_bits", 4.5)])
def test_a_model_without_experts_refuses_their_format(name, value):
    with pytest.raises(SpecError, match=f"{name} of a model without experts"):
        ServingSimulator(model="llama3-8b").check_values({name: [value]})


def test_a_device_without_the_format_is_refused_or_an_infeasible_design():
    own = ServingSimulator(model="gpt-oss-120b", device="h200-sxm")
    with pytest.raises(SpecError, match="no units for nvfp4"):
        own.check_values({"expert_format": ["nvfp4"]})
    some = ServingSimulator(model="gpt-oss-120b", device=None, requests=2)
    design = {"device": "h200-sxm", "tp": 8, "rate": 1.0, "max_num_seqs": 4}
    found = some.evaluate(Batch.of([design | {"expert_format": "nvfp4"}]))
    assert "no units for nvfp4" in found.failures[0].reason
