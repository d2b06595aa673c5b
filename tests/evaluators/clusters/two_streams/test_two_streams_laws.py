"""What must hold of any iteration of two streams, whatever its numbers are."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch, Column
from dse.errors import SpecError
from dse_evaluators.clusters.two_streams.iteration import PARTS, play
from dse_evaluators.clusters.two_streams.layer_units import Unit
from dse_evaluators.clusters.two_streams.machines import COLLECTIVES
from dse_evaluators.clusters.two_streams.order import Order, StreamStep, StreamWork
from dse_evaluators.clusters.two_streams.strategies import DENSE, EMBEDDING
from dse_evaluators.clusters.two_streams.two_streams import TwoStreams

MODEL = st.sampled_from(["dlrm-a-moe", "dlrm-f", "dlrm-a-small-transformer", "vit-h"])
RATES = ("peak", "memory_bandwidth", "link_bandwidth", "network_bandwidth")
PLANS = st.fixed_dictionaries(
    {
        "model": MODEL,
        "dense": st.sampled_from(list(DENSE)),
        "embedding": st.sampled_from(list(EMBEDDING)),
        "nodes": st.sampled_from([1, 2, 16, 64]),
        "inner_degree": st.sampled_from([1, 2, 8]),
        "global_batch": st.just(65_536),
        "peak": st.floats(1e13, 1e16),
        "memory_bandwidth": st.floats(1e11, 1e13),
        "link_bandwidth": st.floats(1e9, 1e12),
        "network_bandwidth": st.floats(1e9, 1e12),
    }
)
BASE = {"dense": "tp-ddp", "nodes": 16, "embedding": "mp-ddp", "inner_degree": 4}


@cache
def evaluator(options):
    """One for all tests with these options: it keeps the orders that it has made."""
    return TwoStreams(**dict(options))


def told(design, **options):
    """The metrics of a plan, and its fault."""
    settled = {"system": "zionex"} | options
    one = evaluator(tuple(settled.items())).evaluate(Batch.of([design]))
    return {name: float(values[0]) for name, values in one.columns.items()}, one.failures.get(0)


@settings(max_examples=30)
@given(PLANS, st.sampled_from(RATES), st.floats(1, 100))
def test_more_of_any_rate_is_never_slower(plan, rate, times):
    before, _ = told(plan)
    after, _ = told(plan | {rate: plan[rate] * times})
    assert after["iteration_time"] <= before["iteration_time"] * (1 + 1e-12)


@settings(max_examples=30)
@given(PLANS)
def test_inference_is_never_slower_than_fine_tuning_and_that_never_than_training(plan):
    train, tune, answer = (
        told(plan, task=task)[0] for task in ("pretrain", "finetune", "inference")
    )
    assert answer["iteration_time"] <= tune["iteration_time"] <= train["iteration_time"]
    assert answer["memory"] <= tune["memory"] <= train["memory"]


@settings(max_examples=30)
@given(PLANS)
def test_full_sharding_takes_no_more_memory_than_any_other_layout(plan):
    full, _ = told(plan | {"dense": "fsdp"})
    other, _ = told(plan)
    copied, _ = told(plan | {"dense": "ddp"})
    assert full["memory"] <= other["memory"] <= copied["memory"] * (1 + 1e-12)


@settings(max_examples=30)
@given(PLANS)
def test_the_parts_sum_and_nothing_is_exposed_that_is_not_said(plan):
    got, _ = told(plan)
    assert sum(got[f"{part}_time"] for part in PARTS) == pytest.approx(got["iteration_time"])
    assert all(got[f"exposed_{n}_time"] <= got[f"{n}_time"] * (1 + 1e-9) for n in COLLECTIVES)
    assert got["iteration_time"] <= got["compute_time"] + got["embedding_time"] + got[
        "communication_time"
    ] * (1 + 1e-9)


@settings(max_examples=30)
@given(PLANS)
def test_summing_only_what_a_device_has_is_never_slower(plan):
    whole, _ = told(plan)
    own, _ = told(plan, sharded_sums=True)
    assert own["iteration_time"] <= whole["iteration_time"]


@settings(max_examples=30)
@given(PLANS)
def test_a_device_alone_says_nothing(plan):
    got, _ = told(plan | {"nodes": 1, "devices_per_node": 1, "inner_degree": 1})
    assert got["communication_time"] == 0
    assert got["iteration_time"] == pytest.approx(got["compute_time"] + got["embedding_time"])


@settings(max_examples=30)
@given(PLANS)
def test_on_one_node_a_second_level_of_one_makes_no_difference(plan):
    alone = plan | {"nodes": 1, "inner_degree": 8, "embedding": "mp"}
    one, _ = told(alone | {"dense": "fsdp"})
    two, _ = told(alone | {"dense": "fsdp-ddp"})
    assert two["iteration_time"] == one["iteration_time"]


def test_a_row_among_many_is_that_row_alone():
    rows, chance = 1500, np.random.default_rng(0)
    some = Batch(
        {
            "dense": Column(np.array(list(DENSE), dtype=object)[chance.integers(0, 7, rows)]),
            "nodes": Column(2.0 ** chance.integers(0, 8, rows)),
            "network_bandwidth": Column(chance.uniform(1e9, 1e12, rows)),
        },
        rows,
    )
    plan = TwoStreams(model="dlrm-i-moe", system="aws-p5")
    many = plan.evaluate(some).columns["iteration_time"]
    alone = [plan.evaluate(some.take(np.array([at]))).columns for at in (0, 1, 700, 1499)]
    assert [one["iteration_time"][0] for one in alone] == many[[0, 1, 700, 1499]].tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"model": "dlrm-i"},
        {"task": "finetune"},
        {"system": "aws-p4d"},
        {"dense": "fsdp-ddp"},
        {"embedding": "mp"},
        {"nodes": 32},
        {"devices_per_node": 4},
        {"inner_degree": 2},
        {"global_batch": 32_768},
        {"peak": 1e15},
        {"flops_share": 0.5},
        {"memory_capacity": 1e12},
        {"memory_bandwidth": 1e13},
        {"link_bandwidth": 1e12},
        {"network_bandwidth": 1e12},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_knob_moves_something(change):
    base = BASE | {"model": "dlrm-a", "task": "pretrain", "system": "zionex"}
    before, _ = told(base, system=None)
    after, _ = told(base | change, system=None)
    assert before != after


@pytest.mark.parametrize(
    "option",
    [
        {"prefetch": True},
        {"sharded_sums": True},
        {"price_per_hour": 1.0},
        {"grid": "iceland"},
        {"pue": 1.5},
        {"task": "finetune", "frozen": ("bottom",)},
    ],
    ids=lambda option: next(iter(option)),
)
def test_every_option_moves_something(option):
    plan = {"dense": "fsdp-ddp", "nodes": 16}
    assert told(plan, model="dlrm-a")[0] != told(plan, model="dlrm-a", **option)[0]


def test_a_training_of_so_many_samples_takes_so_many_iterations():
    got, _ = told({"dense": "fsdp", "nodes": 16}, model="dlrm-a", samples=1e12)
    assert got["time_to_train"] == pytest.approx(1e12 / got["throughput"])
    assert got["cost_per_sample"] == pytest.approx(got["device_time_per_sample"] * 1.99 / 3600)


def test_samples_that_do_not_come_out_even_are_refused():
    _, failure = told({"dense": "ddp", "nodes": 3, "global_batch": 64}, model="dlrm-f")
    assert failure.reason == "64 samples cannot be split evenly over 24 copies"


def test_what_an_inner_level_may_be_is_asked_only_where_there_is_one():
    _, failure = told({"dense": "tp-ddp", "nodes": 16, "inner_degree": 3}, model="dlrm-f")
    assert failure.reason == "an inner level of 3 devices does not divide a node of 8"
    _, failure = told({"dense": "fsdp", "nodes": 16, "inner_degree": 3}, model="dlrm-a-small")
    assert failure is None


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"model": "dlrm-b"}, "model cannot be"),
        ({"model": "dlrm-a", "system": "zion"}, "system cannot be"),
        ({"model": "dlrm-a", "task": "train"}, "task cannot be"),
        ({"frozen": ["top"]}, "needs model and task"),
        ({"model": "dlrm-a", "task": "pretrain", "frozen": ["top"]}, "the task is pretrain"),
        ({"model": "dlrm-a", "task": "finetune", "frozen": ["middle"]}, "frozen cannot be"),
        (
            {"model": "dlrm-a", "task": "finetune", "frozen": ["bottom", "top", "embedding"]},
            "every part is frozen",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options, word):
    with pytest.raises(SpecError, match=word):
        TwoStreams(**options)


def test_a_model_without_tables_has_no_layout_of_them():
    assert "embedding" not in TwoStreams(model="sd-unet-512").optional
    assert "embedding" in TwoStreams(model="dlrm-a").optional


def test_what_is_exposed_is_what_runs_while_nothing_is_computed():
    unit = Unit(stack="all", weights=1.0, operations=1.0, outputs=1.0)
    works = (
        StreamWork("forward", unit),
        StreamWork("backward", unit),
        StreamWork("gather", unit),
        StreamWork("scatter", unit),
    )
    steps = (
        StreamStep(work=2, talks=True, waits=-1),  # 0 to 2 s
        StreamStep(work=0, talks=False, waits=0),  # 2 to 5 s
        StreamStep(work=3, talks=True, waits=1),  # 5 to 9 s
        StreamStep(work=1, talks=False, waits=-1),  # 5 to 6 s
    )
    seconds = [np.array([each]) for each in (3.0, 1.0, 2.0, 4.0)]
    played = play(Order(works=works, passes=(steps, steps)), seconds)
    assert played.total_s.tolist() == [18.0]
    assert {place: each.tolist() for place, each in played.exposed_s.items()} == {
        2: [4.0],
        3: [6.0],
    }
