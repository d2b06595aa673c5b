"""Simulation loop: run all requests through n servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.clusters.simulator.gaps import Gaps
from dse_evaluators.clusters.simulator.iteration import Prices, advance
from dse_evaluators.clusters.simulator.plan import SimulatorPlan
from dse_evaluators.clusters.simulator.state import ServerState, fresh, join_states

_SETTLED = 0.2
"""Finished rows are removed from the loop when they are at least this share of all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Requests of n servers, (n, w); arrivals after a server's last request are infinite."""

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
    through, twice = list[ServerState](), prices(np.tile(state.row, 2))
    while len(state.row):
        advance(state, gaps, twice)
        over = state.ended >= state.count
        if over.mean() >= _SETTLED:
            through.append(state.take(np.flatnonzero(over)))
            state = state.take(np.flatnonzero(~over))
            twice = prices(np.tile(state.row, 2))
    return join_states(through), gaps
