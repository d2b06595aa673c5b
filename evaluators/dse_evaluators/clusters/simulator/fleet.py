"""The copies of a model that a design has, each with its share of the requests."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.clusters.simulator.outcome import SimulationResult
from dse_evaluators.clusters.simulator.plan import SimulatorPlan
from dse_evaluators.clusters.simulator.play import Queue, play
from dse_evaluators.clusters.simulator.server import ModelServer
from dse_evaluators.clusters.simulator.traffic import RequestTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLoad:
    """Request load of n designs; both fields are (n,)."""

    rate: Floats
    """By which the times of the traffic are divided."""
    clients: Ints
    """That ask again when they are answered; 0: requests come by themselves."""


def run(
    plan: SimulatorPlan,
    server: ModelServer,
    load: RequestLoad,
    traffic: RequestTrace,
    *,
    copies: Ints,
    weight: float,
) -> SimulationResult:
    """Simulate the traffic on n designs with ``copies`` copies each, (n,).

    Requests and clients go to the copies in turn, so that a copy has as many clients as another,
    or one more.
    """
    n, r = len(copies), len(traffic.prompt)
    owner = np.repeat(np.arange(n), copies)
    start = np.cumsum(copies) - copies
    turn = np.arange(len(owner)) - start[owner]
    width = np.arange(-(-r // int(copies.min())))
    who = width * copies[owner][:, None] + turn[:, None]  # (rows, w)
    here, some = who < r, np.minimum(who, r - 1)
    arrival = np.where(here, traffic.arrival[some] / load.rate[owner][:, None], np.inf)
    clients = load.clients[owner] // copies[owner]
    clients = clients + (turn < load.clients[owner] % copies[owner])
    queue = Queue(arrival=arrival, prompt=traffic.prompt[some], answer=traffic.answer[some])
    rows = replace(plan.take(owner), clients=clients)
    state, gaps = play(rows, queue, server.take(owner).tariff, weight=weight)

    def each(values: Floats) -> Floats:
        """(rows, w) by request, (n, r)."""
        found = np.zeros((n, r))
        found[np.broadcast_to(owner[:, None], who.shape)[here], who[here]] = values[here]
        return found

    def summed(values: Floats | Ints) -> Floats:
        return np.bincount(owner, weights=values, minlength=n).astype(np.float64)

    return SimulationResult(
        arrival=each(state.arrival),
        started=each(state.started),
        first=each(state.first),
        finish=each(state.finish),
        slowest=each(gaps.slowest) if weight else np.zeros((n, 0)),
        tokens=np.add.reduceat(gaps.tokens, start, axis=0),
        devices=server.share.devices * copies,
        copies=copies.astype(np.float64),
        busy_s=summed(state.busy),
        texts_s=summed(state.texts_s),
        compute_j=summed(state.compute_j),
        memory_j=summed(state.memory_j),
        base_w=server.draw.base_w,
        evictions=summed(state.evictions),
        largest=np.maximum.reduceat(state.seen, start).astype(np.float64),
    )
