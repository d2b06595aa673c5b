"""Recommendation in stages: cycles against logged times, queues against a simulation by hand."""

from __future__ import annotations

from heapq import heapreplace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.recommenders.arrivals import QUERIES
from dse_evaluators.recommenders.funnel import Funnel
from dse_evaluators.recommenders.funnel_queue import simulate_p99

TWO = {"stages": 2, "model_1": "small", "items_1": 4096, "model_2": "large", "items_2": 512}


def find(*designs, **knobs):
    return Funnel(knobs=knobs).evaluate(Batch.of(designs))


# Inference times that the authors' model logs, in seconds, to the digits that it prints.
@pytest.mark.parametrize(
    ("design", "logged"),
    [
        ({"stages": 1, "model_1": "large", "items_1": 4096, "side_1": 128}, 0.00209074),
        ({**TWO, "side_1": 64, "side_2": 64}, 0.0013944),
        ({**TWO, "side_1": 32, "side_2": 32}, 0.0034971),
        ({**TWO, "side_1": 16, "side_2": 16}, 0.0271418),
    ],
)
def test_the_times_are_those_of_the_authors_logs(design, logged):
    assert find(design, rate=1).columns["latency"][0] == pytest.approx(logged, rel=1e-4)


def queue_by_hand(rate, services, servers):
    begun = np.cumsum(np.random.default_rng(0).exponential(size=QUERIES)) / rate
    times = begun
    for service, count in zip(services, servers, strict=True):
        free, ended = [0.0] * count, []
        for arrival in times.tolist():
            ended.append(max(free[0], arrival) + service)
            heapreplace(free, ended[-1])
        times = np.array(ended)
    return np.quantile((times - begun)[QUERIES // 8 :], 0.99)


@pytest.mark.parametrize(
    ("services", "servers"), [((0.008,), (1,)), ((0.015, 0.006), (2, 1)), ((0.03, 0.007), (4, 1))]
)
def test_queues_are_those_of_servers_that_take_one_query_after_the_other(services, servers):
    found = simulate_p99(
        np.array([100.0]),
        [np.array([one]) for one in services],
        [np.array([float(one)]) for one in servers],
    )
    assert found[0] == pytest.approx(queue_by_hand(100.0, services, servers), rel=1e-9)


def test_queues_of_random_designs_are_those_by_hand_in_one_batch():
    """Stages without waiting, tables of tails and whole simulations: each gives the same times."""
    rng = np.random.default_rng(4)
    servers = 2 ** rng.integers(0, 5, size=(30, 3))
    loads = rng.uniform(0.05, 0.98, size=(30, 3)) * (rng.random((30, 3)) < 0.8)
    rates = rng.uniform(10, 1000, size=30)
    services = loads * servers / rates[:, None]
    found = simulate_p99(rates, list(services.T), list(servers.T.astype(float)))
    wanted = [
        queue_by_hand(*design)
        for design in zip(rates, services.tolist(), servers.tolist(), strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_times_of_a_design_do_not_depend_on_its_batch():
    designs = [{**TWO, "rate": rate, "cores_1": 2} for rate in (20, 300, 500)]
    together = find(*designs).columns["p99"]
    assert together.tolist() == [find(one).columns["p99"][0] for one in designs]


def test_the_tail_grows_with_the_rate_and_is_the_latency_when_idle():
    found = find(*({**TWO, "rate": rate} for rate in (0.01, 300, 600))).columns
    assert found["p99"][0] == pytest.approx(found["latency"][0], rel=1e-6)
    assert found["p99"][0] < found["p99"][1] < found["p99"][2]


def test_growing_items_and_overload_are_faults_and_absent_stages_are_not():
    grown, much, one = {**TWO, "items_2": 4096}, {**TWO, "rate": 1e5}, {**TWO, "stages": 1}
    found = find(grown, much, {**one, "items_2": 9999})
    assert found.failures[0].reason == "stage 2 ranks 4096 items, and stage 1 4096"
    assert "times what a stage can serve" in found.failures[1].reason
    assert 2 not in found.failures


def test_elements_are_those_of_the_stages_that_are_there():
    sides = {"side_1": 64, "cores_1": 2, "side_2": 32, "cores_2": 8}
    found = find({**TWO, **sides}, {**TWO, **sides, "stages": 1}).columns
    assert found["elements"].tolist() == [2 * 64**2 + 8 * 32**2, 2 * 64**2]
