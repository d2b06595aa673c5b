"""State of n simulated servers between two iterations, one server per row."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from dse.core.values import Array, Floats, Ints, Mask
from dse_evaluators.clusters.simulator.server_settings import SimulatorPlan

NEVER = np.iinfo(np.int64).max // 4
"""Step index of an event that never happens."""


@dataclass(slots=True, kw_only=True)
class ServerState:
    """State of n servers with up to w requests each; fields are (n,), or (n, w) per request.

    ``step`` counts the decode iterations of a server. A running sequence ends at the step ``ends``,
    so sequences need no update before the earliest end. Requests are served in the order of
    arrival; evicted ones form a stack with the oldest on top, which is served first.
    """

    plan: SimulatorPlan
    row: Ints
    """Index of the server before finished rows were removed."""
    count: Ints
    """Requests of a row."""
    arrival: Floats  # (n, w), seconds; infinite while unknown
    full: Ints  # (n, w), tokens of prompt and answer
    need: Ints  # (n, w), tokens to prefill before the next token is generated
    left: Ints  # (n, w), tokens still to generate at the start of the last prefill
    ends: Ints  # (n, w), step; NEVER if not in decode
    soonest: Ints
    """The earliest of ``ends``."""
    started: Floats  # (n, w), seconds; NaN before the first prefill
    first: Floats  # (n, w), seconds of the first token; NaN before
    finish: Floats  # (n, w), seconds of the last token; NaN before
    now: Floats
    """Clock of the server [s]."""
    step: Ints
    issued: Ints
    """Requests whose arrival is known."""
    next: Ints
    """The first request that was never admitted."""
    stack: Ints  # (n, w), evicted requests
    depth: Ints
    """Number of evicted requests on the stack."""
    head: Ints
    """Request whose prefill is split into chunks and unfinished; -1: no such request."""
    done: Ints
    """Tokens of ``head`` that were prefilled."""
    running: Ints
    """Sequences in decode."""
    context: Ints
    """Total tokens of the sequences in decode."""
    ended: Ints
    """Finished requests."""
    busy: Floats
    """Seconds spent in iterations."""
    compute_j: Floats
    memory_j: Floats
    seen: Ints
    """Tokens of the largest iteration."""
    texts_s: Floats
    """Integral of ``running`` over time [s]."""
    evictions: Ints

    def take(self, rows: Array) -> ServerState:
        """Return the state of the servers at the indices ``rows``."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return ServerState(plan=self.plan.take(rows), **columns)


_COLUMNS = tuple(each.name for each in fields(ServerState) if each.name != "plan")


def fresh(plan: SimulatorPlan, arrival: Floats, prompt: Ints, answer: Ints) -> ServerState:
    """Return the initial state of n servers.

    Args:
        plan: scheduler limits of the servers, such as batch size and token budget.
        arrival: arrival times [s], (n, w), infinite after a server's last request. In a closed loop
            only whether they are finite matters: each client's first request arrives at 0, its next
            ones when the previous one is answered.
        prompt: input tokens of each request, (n, w).
        answer: output tokens of each request, (n, w).
    """
    n, w = arrival.shape
    count = np.isfinite(arrival).sum(axis=1)
    closed = plan.clients > 0
    issued = np.where(closed, np.minimum(plan.clients, count), count)
    at_once = np.where(np.arange(w) < issued[:, None], 0.0, np.inf)
    nothing, zero = np.zeros(n, dtype=np.int64), np.zeros(n)
    unknown = np.full((n, w), np.nan)
    return ServerState(
        plan=plan,
        row=np.arange(n),
        count=count,
        arrival=np.where(closed[:, None], at_once, arrival),
        full=prompt + answer,
        need=prompt.copy(),
        left=answer.copy(),
        ends=np.full((n, w), NEVER),
        soonest=np.full(n, NEVER),
        started=unknown,
        first=unknown.copy(),
        finish=unknown.copy(),
        now=zero,
        step=nothing,
        issued=issued,
        next=nothing.copy(),
        stack=np.zeros((n, w), dtype=np.int64),
        depth=nothing.copy(),
        head=np.full(n, -1),
        done=nothing.copy(),
        running=nothing.copy(),
        context=nothing.copy(),
        ended=nothing.copy(),
        busy=zero.copy(),
        compute_j=zero.copy(),
        memory_j=zero.copy(),
        seen=nothing.copy(),
        texts_s=zero.copy(),
        evictions=nothing.copy(),
    )


def find_places(mask: Mask) -> tuple[Ints, Ints]:
    """Return row and column of each true element of an (n, w) mask, as ``nonzero``, but faster."""
    row, column = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return row, column


def join_states(states: list[ServerState]) -> ServerState:
    """Join states of disjoint sets of servers into one, in the servers' original order."""
    order = np.argsort(np.concatenate([one.row for one in states]))
    plan = SimulatorPlan(
        **{
            each.name: np.concatenate([getattr(one.plan, each.name) for one in states])[order]
            for each in fields(SimulatorPlan)
        }
    )
    columns = {
        name: np.concatenate([getattr(one, name) for one in states])[order] for name in _COLUMNS
    }
    return ServerState(plan=plan, **columns)
