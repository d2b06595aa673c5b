"""Simulation of designs with several model copies, which share the requests round robin."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.clusters.simulator.gaps import Gaps
from dse_evaluators.clusters.simulator.request_metrics import SimulationResult
from dse_evaluators.clusters.simulator.server import ModelServer
from dse_evaluators.clusters.simulator.server_iteration import Prices, advance
from dse_evaluators.clusters.simulator.server_settings import SimulatorPlan
from dse_evaluators.clusters.simulator.state import ServerState, fresh, join_states
from dse_evaluators.clusters.simulator.traffic import RequestTrace

_SETTLED = 0.2
"""Finished rows are removed from the loop when they are at least this share of all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLoad:
    """Request load of n designs: rate and number of clients; both fields are (n,)."""

    rate: Floats
    """Factor by which the arrival times of the trace are divided."""
    clients: Ints
    """Clients of a closed loop; 0: requests arrive at given times."""


def run(
    plan: SimulatorPlan,
    server: ModelServer,
    load: RequestLoad,
    traffic: RequestTrace,
    *,
    copies: Ints,
    weight: float,
) -> SimulationResult:
    """Simulate the serving of requests on n designs with ``copies`` model copies each.

    Requests and clients are assigned to the copies round robin, so the numbers of clients of two
    copies differ by at most one.

    Args:
        plan: settings of the servers, one element per design; the clients are set here.
        server: cost models of the servers, one element per design.
        load: rate and clients of each design.
        traffic: the requests, which all designs share.
        copies: model copies of each design, (n,).
        weight: weight of a new gap between tokens in a sequence's moving average of gaps; 0: no
            average is computed.
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
        """Rearrange values of each server's requests, (servers, w), by design, (n, r)."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Requests of n servers, each with up to w requests, (n, w).

    Arrivals after a server's last request are infinite.
    """

    arrival: Floats  # seconds
    prompt: Ints  # tokens
    answer: Ints  # tokens


def play(
    plan: SimulatorPlan, queue: Queue, prices: Prices, *, weight: float = 0.0
) -> tuple[ServerState, Gaps]:
    """Simulate n servers until all requests are answered; return final states and token gaps.

    Between two events an iteration adds one token to each sequence, so iteration times grow
    linearly and a run of iterations is one sum. Rows are simulated independently.

    Args:
        plan: plan of each row.
        queue: requests of each row.
        prices: returns the cost function of the iterations of given rows.
        weight: weight of a new gap in the moving average of a sequence's gaps (:class:`Gaps`);
            0: no average is kept.
    """
    state = fresh(plan, queue.arrival, queue.prompt, queue.answer)
    gaps = Gaps.none(queue.arrival.shape, weight)
    through = list[ServerState]()
    while len(state.row):
        advance(state, gaps, prices)
        over = state.ended >= state.count
        if over.mean() >= _SETTLED:
            through.append(state.take(np.flatnonzero(over)))
            state = state.take(np.flatnonzero(~over))
    return join_states(through), gaps
