"""Plays all requests through many servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.clusters.simulator.gaps import Gaps
from dse_evaluators.clusters.simulator.iteration import Prices, advance
from dse_evaluators.clusters.simulator.plan import SimulatorPlan
from dse_evaluators.clusters.simulator.state import ServerState, fresh, join_states

_SETTLED = 0.2
"""Rows that are through are put aside when they are this share of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The requests of each row, (n, w); behind the last one of a row arrivals are infinite."""

    arrival: Floats
    prompt: Ints
    answer: Ints


def play(
    plan: SimulatorPlan, queue: Queue, prices: Prices, *, weight: float = 0.0
) -> tuple[ServerState, Gaps]:
    """Every row when its last request is answered, and the gaps between tokens.

    Between two changes an iteration differs from the one before by one token of each text, so its
    time lies on a line, and a run of them is one sum. Every row goes from change to change by
    itself: nothing of another row is looked at.

    Args:
        plan: of each row.
        queue: its requests.
        prices: of its iterations.
        weight: of a new gap in the pace of a text (:class:`Gaps`); 0: no pace is kept.
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
