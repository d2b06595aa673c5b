"""Memory by attention and weight format: counts by hand, the order in print, and bad groups."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.reasoning.attention_memory import MemoryEfficiency


def memory(**design):
    found = MemoryEfficiency().evaluate(Batch.of([{"model": "llama2-7b", **design}]))
    assert not found.faults
    return {name: float(column[0]) for name, column in found.columns.items()}


# 32 layers, 32 heads of 128, two bytes: Shazeer 2019; Ainslie et al. 2023; DeepSeek-V2, table 1
@pytest.mark.parametrize(
    ("design", "elements"),
    [
        ({"attention": "mha"}, 2 * 32 * 128),
        ({"attention": "gqa", "groups": 8}, 2 * 8 * 128),
        ({"attention": "mqa"}, 2 * 128),
        ({"attention": "mla"}, 576),
        ({"attention": "own"}, 2 * 32 * 128),
    ],
)
def test_a_token_adds_the_bytes_of_the_formula_in_print(design, elements):
    found = memory(**design, context=1000, sequences=3)
    assert found["cache_per_token"] == 32 * elements * 2
    assert found["cache"] == 3000 * 32 * elements * 2
    assert found["cache_ratio"] == 8192 / elements


def test_four_bits_with_groups_of_128_take_3_88_times_less():
    assert memory(weight_bits=4, group=128)["weight_ratio"] == pytest.approx(16 / 4.125)


def test_weights_follow_the_heads_of_the_projections():
    whole, single = (memory(attention=one)["weights"] for one in ("mha", "mqa"))
    assert whole - single == 2 * 32 * 2 * 4096 * 31 * 128


def test_groups_that_do_not_divide_the_heads_have_a_reason():
    found = MemoryEfficiency().evaluate(
        Batch.of([{"model": "llama2-7b", "attention": "gqa", "groups": 7}])
    )
    assert found.faults[0].reason == "7 groups do not divide 32 heads"
