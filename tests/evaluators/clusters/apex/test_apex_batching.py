"""Requests in steps: who is in each, what it takes, and what becomes of them."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.apex.apex import Apex
from dse_evaluators.clusters.apex.apex_plan import GIB, ApexPlan, Cluster
from dse_evaluators.clusters.apex.batching import Costs, play
from dse_evaluators.clusters.apex.lane import Lane, LaneLimits
from dse_evaluators.clusters.apex.stage import ApexFabric, DeviceRates, Efficiency, PipelineStage
from dse_evaluators.clusters.apex.trace_simulation import run
from dse_evaluators.clusters.apex.traces import TraceRequest, scale_arrivals, trace, workloads
from dse_evaluators.clusters.collectives import CollectiveConstants
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

FAR = CollectiveConstants(latency_s=3e-5, bytes_per_s=45e9, pipelining=0.0)
REQUESTS = st.lists(
    st.tuples(st.floats(0, 4), st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=12
)


def stage(**told) -> PipelineStage:
    """A stage of Llama-3-8B on four H100."""
    sides = {"dp": 1, "pp": 1, "attn_replicas": 1, "ffn_replicas": 1, **told}
    return PipelineStage(
        plan=ApexPlan(
            model=TRANSFORMERS["llama3-8b"],
            cluster=Cluster(4, 8, 80 * GIB),
            by_experts=False,
            weight_bytes=2.0,
            cache_bytes=2.0,
            **sides,
        ),
        rates=DeviceRates(989e12, 3.35e12),
        efficiency=Efficiency(memory=0.8, step_s=0.005, sequence_s=0.0003),
        fabric=ApexFabric(within="h100-nccl", between=FAR, override=None, node_devices=8),
    )


def lanes(requests: list[tuple], shape: tuple[int, int], limits: LaneLimits) -> list[list[Lane]]:
    """The lanes of so many micro-batches with so many replicas, requests dealt in turn."""
    told = [TraceRequest(*one) for one in sorted(requests)]
    pp, replicas = shape
    return [
        [Lane(told[batch::pp][replica::replicas], limits) for replica in range(replicas)]
        for batch in range(pp)
    ]


class Slow(Lane):
    """A lane that tells of one step at a time: nothing is summed in closed form."""

    __slots__ = ()

    def steps(self) -> int:
        return min(super().steps(), 1)


SHAPES = st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)])


@given(requests=REQUESTS, shape=SHAPES, room=st.integers(80, 300), texts=st.integers(1, 8))
def test_steps_that_are_summed_at_once_come_to_what_single_ones_do(
    requests: list, shape: tuple, room: int, texts: int
):
    costs = Costs(stage(pp=shape[0], attn_replicas=shape[1]))
    limits = LaneLimits(room, texts, 4096)
    quick, single = lanes(requests, shape, limits), lanes(requests, shape, limits)
    for lane in chain(*single):
        lane.__class__ = Slow
    clock_s, spent = play(costs, quick)
    slow_s, slow_spent = play(costs, single)
    assert clock_s == pytest.approx(slow_s, rel=1e-9)
    assert spent.attention_s == pytest.approx(slow_spent.attention_s, rel=1e-6, abs=1e-12)
    for one, other in zip(chain(*quick), chain(*single), strict=True):
        assert one.last_s == pytest.approx(other.last_s, rel=1e-9)
        assert one.evictions == other.evictions


@given(requests=REQUESTS, shape=SHAPES, room=st.integers(80, 300))
def test_every_answer_is_written_and_leaves_nothing_behind(requests: list, shape: tuple, room: int):
    done = list(chain(*lanes(requests, shape, LaneLimits(room, 8, 4096))))
    batches = [done[at : at + shape[1]] for at in range(0, len(done), shape[1])]
    clock_s, spent = play(Costs(stage(pp=shape[0], attn_replicas=shape[1])), batches)
    assert [(lane.cached, lane.texts, lane.next_s) for lane in done] == [
        (0, 0, float("inf"))
    ] * len(done)
    assert all(lane.first_s == sorted(lane.first_s) for lane in done)  # first come, first served
    assert max(max(lane.last_s, default=0.0) for lane in done) == clock_s
    assert spent.busy_s + spent.idle_s == pytest.approx(clock_s, rel=1e-9)


@given(requests=REQUESTS)
def test_nobody_gives_way_where_there_is_room_for_all(requests: list):
    batches = lanes(
        requests, (1, 1), LaneLimits(sum(one[1] + one[2] for one in requests), 99, 4096)
    )
    play(Costs(stage()), batches)
    assert batches[0][0].evictions == 0


def test_more_room_may_make_more_texts_give_way():
    # It lets in two whose answers do not fit together, where less room keeps one waiting.
    requests = [(0.0, 45, 30), (0.0, 45, 30)]
    few, many = (lanes(requests, (1, 1), LaneLimits(room, 9, 4096)) for room in (80, 95))
    play(Costs(stage()), few)
    play(Costs(stage()), many)
    assert (few[0][0].evictions, many[0][0].evictions) == (0, 1)


def test_the_newest_gives_way_and_ends_last():
    (lane,) = lanes([(0.0, 10, 20), (0.0, 10, 20)], (1, 1), LaneLimits(40, 9, 4096))[0]
    play(Costs(stage()), [[lane]])
    assert lane.evictions == 1
    assert lane.first_s[0] == lane.first_s[1]
    assert lane.last_s[0] < lane.last_s[1]


def test_a_lone_text_takes_a_step_for_every_token():
    one = stage()
    (lane,) = lanes([(3.0, 100, 3)], (1, 1), LaneLimits(999, 9, 4096))[0]
    clock_s, spent = play(Costs(one), [[lane]])
    reading_s = one.fixed(100, 100).total_s + 0.0003 + 100**2 * one.squared_s
    writing_s = [one.fixed(1, 1).total_s + 0.0003 + cached * one.cached_s for cached in (101, 102)]
    assert lane.first_s == [pytest.approx(3.0 + reading_s)]
    assert clock_s == pytest.approx(3.0 + reading_s + sum(writing_s))
    assert spent.idle_s == 3.0


def test_a_request_that_comes_a_hair_later_is_answered_too():
    done = lanes([(0.0, 9, 9), (5e-324, 9, 9)], (2, 1), LaneLimits(99, 9, 4096))
    clock_s, _ = play(Costs(stage(pp=2)), done)
    assert max(lane.last_s[0] for lane in chain(*done)) == clock_s


def test_prompts_of_more_than_65536_tokens_do_not_share_a_step():
    (lane,) = lanes([(0.0, 40_000, 2), (0.0, 40_000, 2)], (1, 1), LaneLimits(10**6, 9, 65_536))[0]
    play(Costs(stage()), [[lane]])
    assert lane.first_s[0] < lane.first_s[1]


@pytest.mark.parametrize("workload", workloads())
def test_recorded_requests_come_in_order_and_stretch_with_the_rate(workload: str):
    told = trace(workload)
    slow = scale_arrivals(told, 0.5)
    arrivals = np.array([one.arrival_s for one in told])
    assert (np.diff(arrivals) >= 0.0).all()
    assert [one.arrival_s for one in slow] == [2.0 * one.arrival_s for one in told]
    assert (len(told) - 1) / arrivals[-1] == pytest.approx(0.5, rel=0.1)


def one_row(told: dict, **options) -> dict[str, float]:
    """The metrics of one design."""
    usual = {"devices": 8, "dp": 1, "pp": 1}
    evaluator = Apex(**{"memory": "80 GiB", "requests": 32, **options})
    found = evaluator.evaluate(Batch.of([{**usual, **told}]))
    assert not found.failures
    return {name: float(column[0]) for name, column in found.columns.items()}


@given(
    slow=st.floats(1e9, 1e11),
    times=st.floats(1.0, 100.0),
    sides=st.sampled_from([{}, {"attn_replicas": 4}, {"pp": 4}, {"dp": 2, "attn_replicas": 2}]),
)
def test_faster_links_make_nothing_slower_where_all_come_at_once(
    slow: float, times: float, sides: dict
):
    few, many = (
        one_row({**sides, "link_bandwidth": rate, "rate": 1e9}, requests=8)
        for rate in (slow, slow * times)
    )
    names = ("makespan", "tpot", "ttft", "ttft_p95", "collectives_time")
    assert all(many[name] <= few[name] * (1 + 1e-9) for name in names)


@pytest.mark.parametrize(
    ("low", "high"), [({"clock": 0.81e9}, {"clock": 1.2e9}), ({"clock": 1.59e9}, {})]
)
def test_a_higher_clock_is_faster_and_draws_more(low: dict, high: dict):
    slow, fast = (one_row({**told, "rate": 1e9}) for told in (low, high))
    assert fast["makespan"] < slow["makespan"]
    assert fast["energy"] / fast["makespan"] > slow["energy"] / slow["makespan"]


def test_one_device_tells_nobody_anything():
    alone = one_row({"devices": 1}, model="llama3-8b")
    assert alone["collectives_time"] == 0.0


def test_copies_of_one_device_tell_nobody_anything():
    apart = one_row({"dp": 8}, model="llama3-8b")
    assert apart["collectives_time"] == 0.0


def test_smaller_words_leave_more_room_and_take_less_time():
    wide, narrow = (one_row({"weight_format": word, "rate": 1e9}) for word in ("fp16", "int4"))
    assert narrow["parameters"] < wide["parameters"]
    assert narrow["capacity"] > wide["capacity"]
    assert narrow["makespan"] < wide["makespan"]


@pytest.mark.parametrize(
    ("told", "other", "options"),
    [
        ({"devices": 8}, {"devices": 4}, {}),
        ({"dp": 1}, {"dp": 2}, {}),
        ({"pp": 1}, {"pp": 2}, {}),
        ({"attn_replicas": 1}, {"attn_replicas": 2}, {}),
        ({"ffn_replicas": 1}, {"ffn_replicas": 2}, {"model": "llama3-8b"}),
        ({"ffn_mode": "tp"}, {"ffn_mode": "ep"}, {"model": "mixtral-8x7b"}),
        ({"weight_format": "fp16"}, {"weight_format": "fp8"}, {}),
        ({"kv_format": "fp16"}, {"kv_format": "fp8"}, {}),
        ({"max_batch": 1}, {"max_batch": 8}, {}),
        ({"clock": 0.0}, {"clock": 1e9}, {}),
        ({"rate": 0.5}, {"rate": 5.0}, {}),
        ({"link_bandwidth": 0.0}, {"link_bandwidth": 2e10}, {}),
        ({"link_latency": 1e-5}, {"link_latency": 1e-4}, {"link_bandwidth": 2e10}),
    ],
)
def test_every_reading_moves_something(told: dict, other: dict, options: dict):
    assert one_row(told, **options) != one_row(other, **options)


def test_max_batch_limits_a_micro_batch_on_each_replica_of_the_attention():
    requests = [TraceRequest(0.0, 8, 8)] * 4
    shapes = ({"attn_replicas": 1}, {"attn_replicas": 2}, {"attn_replicas": 4})
    ran = [run(stage(**shape), requests, 1) for shape in shapes]
    free = run(stage(**shapes[2]), requests, 1_000_000)
    assert [one.most_texts for one in ran] == [1, 1, 1]
    assert ran[0].makespan_s > ran[1].makespan_s > ran[2].makespan_s == free.makespan_s


def test_whole_experts_are_read_as_they_are_chosen():
    busy, calm = (
        one_row({"ffn_mode": "ep", "rate": rate}, model="mixtral-8x7b") for rate in (1e9, 0.01)
    )
    assert busy["tpot"] > calm["tpot"]


def test_a_plan_does_not_depend_on_its_neighbours():
    evaluator = Apex(requests=32, memory="80 GiB")
    designs = [
        {"devices": 8, "dp": dp, "pp": 1, "rate": rate} for dp in (1, 2, 4) for rate in (1, 9)
    ]
    together = evaluator.evaluate(Batch.of(designs)).columns
    alone = [evaluator.evaluate(Batch.of([one])).columns for one in designs]
    assert all(
        [row[name][0] for row in alone] == together[name].tolist() for name in evaluator.provides
    )
