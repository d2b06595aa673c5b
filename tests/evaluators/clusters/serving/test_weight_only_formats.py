"""Formats of weights alone, by the names that servers give them."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import DseError
from dse_evaluators.clusters.serving.serving import Serving

PLAN = {"tp": 4, "batch": 16}


def columns(*designs, model="llama3-70b"):
    found = Serving(model=model).evaluate(Batch.of([{**PLAN, **one} for one in designs]))
    assert not found.failures
    return found.columns


@pytest.mark.parametrize(
    ("name", "bits"), [("int4", 4.125), ("awq_int4", 4.15625), ("mxfp4", 4.25)]
)
def test_format_of_weights_alone_is_bf16_with_its_bits(name, bits):
    named = {"weight_format": name, "weight_bits": 0.0}
    stated = {"weight_format": "bf16", "weight_bits": bits}
    for values in columns(named, stated).values():
        assert values[0] == values[1]


def test_stated_bits_replace_those_of_the_name():
    named = {"weight_format": "int4", "weight_bits": 3.5}
    stated = {"weight_format": "bf16", "weight_bits": 3.5}
    memory = columns(named, stated)["weights_memory"]
    assert memory[0] == memory[1] < columns({"weight_format": "int4"})["weights_memory"][0]


def test_experts_alone_are_narrow_as_published():
    experts = {"weight_format": "bf16", "expert_format": "mxfp4", "expert_bits": 0.0}
    stated = {"weight_format": "bf16", "expert_format": "bf16", "expert_bits": 4.25}
    for values in columns(experts, stated, model="gpt-oss-120b").values():
        assert values[0] == values[1]


def test_where_bits_are_not_modelled_the_name_is_refused():
    with pytest.raises(DseError, match="int4"):
        Serving(model="llama3-8b").check_values({"prefill_weight_format": ["int4"]})
