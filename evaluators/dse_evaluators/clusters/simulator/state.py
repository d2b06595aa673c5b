"""The state of many servers between two iterations, one a row."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from dse.core.values import Array, Floats, Ints
from dse_evaluators.clusters.simulator.plan import SimulatorPlan

NEVER = np.iinfo(np.int64).max // 4
"""A step that does not come."""


@dataclass(slots=True, kw_only=True)
class ServerState:
    """n servers with up to w requests each: (n,) or, of requests, (n, w).

    ``step`` counts the iterations in which texts got a token. A running text ends at the step
    ``ends``, so none has to be looked at until the first one does. Requests are served in their
    order; those that lost their cache form a stack of which the oldest is on top.
    """

    plan: SimulatorPlan
    row: Ints
    count: Ints
    """Requests of a row."""
    arrival: Floats  # (n, w), infinite where it is not known yet
    full: Ints  # (n, w), tokens of prompt and answer
    need: Ints  # (n, w), tokens to read before the next one is written
    left: Ints  # (n, w), tokens still to write when they were last read
    ends: Ints  # (n, w), NEVER where it does not run
    started: Floats  # (n, w), seconds; NaN before
    first: Floats  # (n, w)
    finish: Floats  # (n, w)
    now: Floats
    step: Ints
    issued: Ints
    """Requests whose arrival is known."""
    next: Ints
    """The first request that was never admitted."""
    stack: Ints  # (n, w)
    depth: Ints
    head: Ints
    """The request whose prompt is read in pieces; -1: none."""
    done: Ints
    """Tokens of it that were read."""
    running: Ints
    context: Ints
    """Tokens of all running texts."""
    ended: Ints
    busy: Floats
    compute_j: Floats
    memory_j: Floats
    seen: Ints
    """Tokens of the largest iteration."""
    texts_s: Floats
    """Seconds times running texts."""
    evictions: Ints

    def take(self, rows: Array) -> ServerState:
        """The state of some rows."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return ServerState(plan=self.plan.take(rows), **columns)


_COLUMNS = tuple(each.name for each in fields(ServerState) if each.name != "plan")


def fresh(plan: SimulatorPlan, arrival: Floats, prompt: Ints, answer: Ints) -> ServerState:
    """Servers that wait for their first request.

    ``arrival`` is (n, w), infinite behind the last request of a row; where clients ask again, the
    first of each come at once and the others when an answer ends.
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


def join_states(states: list[ServerState]) -> ServerState:
    """Return all rows of the parts, in their first order."""
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
