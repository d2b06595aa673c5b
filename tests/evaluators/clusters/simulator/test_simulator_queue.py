"""Limits of the simulated queue that queueing theory knows."""

from __future__ import annotations

import numpy as np
import pytest

from dse_evaluators.clusters.simulator.fleet import Queue, play
from dse_evaluators.clusters.simulator.server_iteration import IterationCost
from dse_evaluators.clusters.simulator.server_settings import SimulatorPlan

SERVICE_S = 0.25


def prices(_rows):
    return cost


def cost(work):
    seconds = np.full(len(work.prompt), SERVICE_S)
    return IterationCost(seconds=seconds, compute_j=seconds, memory_j=seconds)


LOADS = np.array([0.3, 0.5, 0.7])


def waits_s(*, rows, requests):
    """Gaps and waits at each load of requests of one iteration each, served one by one."""
    load = np.repeat(LOADS, rows)
    gaps = np.random.default_rng(1).exponential(SERVICE_S, size=(len(load), requests))
    gaps = gaps / load[:, None]
    whole = {"policy": 0, "budget": 8, "slots": 1, "blocks": 8, "block": 16, "clients": 0}
    plan = SimulatorPlan(**{name: np.full(len(load), value) for name, value in whole.items()})
    ones = np.ones(gaps.shape, dtype=np.int64)
    queue = Queue(arrival=np.cumsum(gaps, axis=1), prompt=ones, answer=ones)
    state, _ = play(plan, queue, prices)
    return gaps, state.started - state.arrival


def test_one_seat_waits_as_lindley_says():
    """Lindley: The Theory of Queues with a Single Server, 1952, equation 1."""
    gaps, waits = waits_s(rows=3, requests=150)
    before = np.hstack([np.zeros((len(gaps), 1)), waits[:, :-1] + SERVICE_S])
    assert waits == pytest.approx(np.maximum(before - gaps, 0.0), abs=1e-9)


def test_one_seat_waits_as_long_as_pollaczek_and_khinchine_say():
    """M/D/1: W = rho D / (2 (1 - rho)); Kleinrock: Queueing Systems I, 1975, section 5.6.

    The mean of so many waits strays by some 5 %.
    """
    _, waits = waits_s(rows=40, requests=320)
    late = waits[:, 64:]  # the queue began empty
    want = LOADS * SERVICE_S / (2.0 * (1.0 - LOADS))
    assert late.reshape(len(LOADS), -1).mean(axis=1) == pytest.approx(want, rel=0.1)
