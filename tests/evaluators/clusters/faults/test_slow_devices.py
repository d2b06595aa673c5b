"""Slow devices in pipelines: placements counted one by one, schedules played, and limits."""

from __future__ import annotations

from itertools import combinations
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.faults.slow_devices import PLACEMENTS, SlowDevices, most_in_one


def evaluated(**design):
    base = {"placement": "random", "stages": 4, "replicas": 3, "microbatches": 6, "layers": 16}
    base |= {"layer_time": 0.5, "slow_devices": 3, "slow_factor": 1.3}
    return SlowDevices().evaluate(Batch.of([base | design]))


def told(**design):
    got = evaluated(**design)
    assert not got.failures
    return {name: float(values[0]) for name, values in got.columns.items()}


def played(stage_s, microbatches, warm=None):
    """The end of a step, played operation by operation; backward takes twice as long as forward.

    ``warm`` forwards come first in each stage; without it as many as in 1F1B.
    """
    last = len(stage_s) - 1
    done: dict[tuple[str, int, int], float] = {}
    free = [0.0] * len(stage_s)
    left = [
        _order(last - stage if warm is None else warm, microbatches) for stage in range(last + 1)
    ]
    while any(left):
        for stage, queue in enumerate(left):
            while queue and (before := _before(queue[0], stage, last)) in done | {None: 0.0}:
                kind, batch = queue.pop(0)
                start = max(free[stage], done.get(before, 0.0))
                took = stage_s[stage] * (1 / 3 if kind == "forward" else 2 / 3)
                free[stage] = done[kind, stage, batch] = start + took
    return max(free)


def _order(first, microbatches):
    warm = min(first, microbatches)
    forwards = [("forward", k) for k in range(microbatches)]
    backwards = [("backward", k) for k in range(microbatches)]
    steady = [one for pair in zip(forwards[warm:], backwards, strict=False) for one in pair]
    return forwards[:warm] + steady + backwards[microbatches - warm :]


def _before(operation, stage, last):
    kind, batch = operation
    if kind == "forward":
        return ("forward", stage - 1, batch) if stage else None
    return ("forward", stage, batch) if stage == last else ("backward", stage + 1, batch)


def by_hand(stage_s, microbatches):
    return sum(stage_s) + (microbatches - 1) * max(stage_s)


STAGES = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6)


@given(STAGES, st.integers(1, 12))
def test_forwards_before_backwards_take_the_sum_and_the_slowest_again_and_again(stage_s, count):
    took = played(stage_s, count, warm=count)
    assert took == pytest.approx(by_hand(stage_s, count))


@given(STAGES, st.integers(1, 12))
def test_1f1b_takes_no_longer_and_no_less_than_its_slowest_stage(stage_s, count):
    took = played(stage_s, count)
    assert took <= by_hand(stage_s, count) * (1 + 1e-9)
    assert took >= count * max(stage_s) * (1 - 1e-9)


@pytest.mark.parametrize("last", [1.0, 1.4])
def test_1f1b_takes_as_long_where_all_are_alike_or_the_last_is_the_slowest(last):
    stage_s = [1.0, 1.0, 1.0, last]
    assert played(stage_s, 12) == pytest.approx(by_hand(stage_s, 12))


def test_a_random_placement_takes_the_mean_of_all_placements():
    slots = [(replica, stage) for replica in range(3) for stage in range(4)]

    def step_s(slow):
        replicas = [[2.6 if (r, s) in slow else 2.0 for s in range(4)] for r in range(3)]
        return max(by_hand(stages, 6) for stages in replicas)

    every = [step_s(slow) for slow in combinations(slots, 3)]
    assert len(every) == 220
    assert told()["step_time"] == pytest.approx(mean(every), rel=1e-12)


def test_the_law_of_the_worst_replica_sums_to_one():
    law = most_in_one(8, 16, 16)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert min(law) == 1


@given(
    placement=st.sampled_from(PLACEMENTS),
    slow=st.integers(0, 3),
    factor=st.floats(1.0, 2.0),
)
def test_a_step_is_never_slower_than_its_slowest_device(placement, slow, factor):
    got = told(placement=placement, slow_devices=slow, slow_factor=factor)
    assert 1 - 1e-12 <= got["slowdown"] <= factor + 1e-12


def test_fewer_layers_for_a_slow_stage_take_less_time():
    plain = told(placement="one_stage", slow_factor=1.5)
    fitting = told(placement="one_stage", slow_factor=1.5, slow_layers=3, layers=16)
    assert fitting["slow_time"] < plain["slow_time"]
    assert fitting["uneven_time"] > 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"placement": "spread"},
        {"stages": 8},
        {"replicas": 5},
        {"microbatches": 7},
        {"layers": 32},
        {"layer_time": 1.0},
        {"slow_devices": 5},
        {"slow_factor": 1.4},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_reading_moves_the_step(change):
    assert told(**change)["step_time"] != told()["step_time"]


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"slow_devices": 13}, "all stages has 12: 1 too many"),
        ({"placement": "one_stage", "slow_devices": 4}, "the stage has 3: 1 too many"),
        ({"slow_layers": 2}, "only placement one_stage allows it"),
        ({"layers": 18}, "18 layers in 4 stages leave 2 over"),
        ({"placement": "one_stage", "slow_layers": 15}, "2 too few"),
    ],
)
def test_a_placement_that_cannot_be_says_why(design, reason):
    failure = evaluated(**design).failures[0]
    assert failure.kind == "infeasible"
    assert reason in failure.reason
