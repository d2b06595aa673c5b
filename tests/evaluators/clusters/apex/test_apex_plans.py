"""Which plans there are, and what they keep in memory."""

from __future__ import annotations

import csv
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse.schema.space.space_loader import space_from
from dse_evaluators.clusters.apex.apex import Apex
from dse_evaluators.clusters.apex.apex_plan import GIB, ApexPlan, Cluster, unmet
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

SPACES = Path(__file__).parents[4] / "spaces" / "clusters"
SIDES = ("dp", "pp", "attn_replicas", "ffn_replicas")

# What the search of microsoft/apex_plus@8769096 finds on H100, eight to a node; it was run. Its layer
# of Mixtral was given no dense part beside its experts, which the model has not either.
with Path(__file__).with_name("apex_counts.csv").open(encoding="utf-8", newline="") as _file:
    COUNTS = [tuple(row.values()) for row in csv.DictReader(_file)]

MIXTRAL = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 14_336, "experts": 8}


def plan(devices: int = 8, model: str = "llama3-70b", **told) -> ApexPlan:
    """A plan on H100 of 80 GiB, in 16 bits."""
    usual = {**dict.fromkeys(SIDES, 1), "by_experts": False}
    return ApexPlan(
        model=TRANSFORMERS[model],
        cluster=Cluster(devices, 8, 80 * GIB),
        **{"weight_bytes": 2.0, "cache_bytes": 2.0, **usual, **told},
    )


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [({}, [3, 11, 26, 50, 34, 84, 128]), (MIXTRAL, [5, 19, 46, 85, 57, 138, 197])],
)
def test_the_space_has_as_many_plans_as_apex_finds(arguments: dict, counts: list[int]):
    fragment = {"file": str(SPACES / "apex_plans.yaml"), "with": arguments}
    space = space_from({"space": "one", "include": {"plan": fragment}})
    sizes = (2, 4, 8, 16, 24, 32, 64)
    assert [space.fixed({"plan.devices": size}).count() for size in sizes] == counts


@pytest.mark.parametrize(("model", "weight_bytes", "devices", "plans"), COUNTS)
def test_the_evaluator_refuses_all_others_and_only_them(
    model: str, weight_bytes: str, devices: str, plans: str
):
    size = int(devices)
    sides = product([side for side in range(1, size + 1) if size % side == 0], repeat=4)
    modes = (False, True) if model == "mixtral-8x7b" else (False,)
    told = [
        plan(size, model, weight_bytes=float(weight_bytes), by_experts=mode, **layout)
        for layout in (dict(zip(SIDES, one, strict=True)) for one in sides)
        for mode in modes
    ]
    legal = [one for one in told if unmet(one, 0) is None]
    # Alone, a device has all experts in either mode.
    assert len([one for one in legal if one.ffn_devices > 1 or not one.by_experts]) == int(plans)


# README of microsoft/apex_plus@8769096: Llama-3-70B on two H100, "GB" of 2^30 bytes, one decimal.
@pytest.mark.parametrize(
    ("told", "gib"), [({}, 63.8), ({"attn_replicas": 2}, 75.0), ({"pp": 2}, 63.8)]
)
def test_the_weights_of_a_device_are_those_that_apex_prints(told: dict, gib: float):
    assert plan(2, **told).parameter_bytes / GIB == pytest.approx(gib, abs=0.05)


# The same: "Activation memory", what the weights leave of 80 GiB.
@pytest.mark.parametrize(("told", "gib"), [({}, 16.2), ({"attn_replicas": 2}, 5.0)])
def test_the_cache_has_what_weights_and_a_gibibyte_leave(told: dict, gib: float):
    one = plan(2, **told)
    kept = one.capacity * one.layers * one.token_bytes + GIB
    assert kept / GIB == pytest.approx(gib, abs=0.05)


def test_a_micro_batch_has_its_share_of_the_cache():
    assert plan(2, pp=2).capacity == plan(2).capacity // 2


def test_more_devices_than_heads_of_keys_hold_some_twice():
    assert plan(16).token_bytes == plan(8).token_bytes


def test_shares_that_are_not_even_are_those_of_the_fullest_device():
    # 24 devices, eight stages of three: three, three and two of eight heads of keys.
    uneven = plan(24, pp=8)
    assert (uneven.kv_heads, uneven.heads) == (3, 24)
    assert plan(24, "mixtral-8x7b", pp=8, by_experts=True).whole_experts == 3


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"devices": 8, "dp": 3}, "8 devices are not divisible into 3 equal shares"),
        ({"devices": 12}, "12 devices do not fill whole nodes of 8"),
        ({"devices": 6, "pp": 3}, "80 layers are not divisible into 3 equal stages"),
        ({"devices": 24, "dp": 2}, "3 nodes are not divisible into 2 equal shares"),
        ({"attn_replicas": 2, "ffn_replicas": 2}, "2 attention and 2 FFN replicas"),
        ({"devices": 128}, "128 devices share 64 heads: 64 too many"),
        ({"devices": 2, "dp": 2}, "weights of 127.5 GiB, memory of 80.0 GiB: 47.5 GiB short"),
        ({"devices": 2}, "a request of 1000000 tokens, room for .*: .* too many"),
        (
            {"model": "mixtral-8x7b", "devices": 16, "by_experts": True},
            "16 devices share 8 experts: 8 too many",
        ),
    ],
)
def test_a_plan_that_cannot_be_says_why_and_by_how_much(told: dict, reason: str):
    broken = unmet(plan(**told), 1_000_000)
    assert broken is not None
    assert re.match(reason, broken.text)


@given(
    devices=st.sampled_from([2, 4, 8, 16, 24]),
    sides=st.tuples(*[st.sampled_from([1, 2, 3, 4, 8])] * 4),
    workload=st.sampled_from(["lmsys", "summarization"]),
)
def test_a_plan_is_priced_if_and_only_if_it_can_be(devices: int, sides: tuple, workload: str):
    evaluator = Apex(workload=workload, requests=4, memory="80 GiB")
    told = dict(zip(SIDES, sides, strict=True))
    broken = unmet(plan(devices, **told), evaluator._longest)
    found = evaluator.evaluate(Batch.of([{"devices": devices, **told}]))
    assert (broken is None) == (not found.failures) == (found.columns["makespan"][0] > 0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"model": "llama"},
        {"workload": "chat"},
        {"requests": 4096},
        {"device": "h100-pcie"},
        {"host": 1.5},
        {"rate": 0},
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict):
    with pytest.raises(SpecError):
        Apex(**options)


def test_a_clock_beyond_the_highest_is_refused():
    with pytest.raises(SpecError, match="clock"):
        Apex().check_values({"clock": [2.5e9]})
