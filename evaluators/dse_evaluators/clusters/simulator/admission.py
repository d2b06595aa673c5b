"""Admission of prompts, complete or in chunks, to the next iteration of a server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse_evaluators.clusters.simulator.cache import count_blocks
from dse_evaluators.clusters.simulator.state import ServerState


@dataclass(slots=True, kw_only=True)
class PrefillBatch:
    """Prefill work of an iteration; arrays are (n,), except ``rows`` and ``requests``."""

    prompt: Ints
    """Prefill tokens."""
    square: Ints
    """Sum of ``c (2 p + c)`` over chunks of c tokens after a prefix of p: 2 per query-key pair."""
    repeats: Ints
    """Iterations in a row with an equal chunk of the same prompt; 0: it is not repeated."""
    room: Ints
    """Tokens left in the budget."""
    rows: list[Ints]
    requests: list[Ints]
    """Requests whose prefill ends in this iteration; arrays parallel to those of ``rows``."""


def admit(state: ServerState, barred: Mask) -> PrefillBatch:
    """Admit requests to the next iteration of each server, and return its prefill work.

    Servers in ``barred``, which have just evicted a request's cache, admit no request.

    Source:
        Yu et al.: Orca, 2022, section 3 (first come, first served, iteration by iteration); Agrawal
        et al.: Sarathi-Serve, 2024, algorithm 3 (decodes, then an unfinished prompt, then new
        ones).
    """
    texts = np.where(state.plan.chunked, state.running, 0)
    nothing = np.zeros_like(texts)
    reading = PrefillBatch(
        prompt=nothing,
        square=nothing.copy(),
        repeats=nothing.copy(),
        room=state.plan.budget - texts,
        rows=[],
        requests=[],
    )
    _go_on(state, reading)
    _let_in(state, reading, barred)
    return reading


def _go_on(state: ServerState, reading: PrefillBatch) -> None:
    """Add the next chunk of each unfinished prompt to the iteration's prefill work."""
    rows = np.flatnonzero(state.head >= 0)
    if not len(rows):
        return
    head, done = state.head[rows], state.done[rows]
    rest = state.need[rows, head] - done
    piece = np.minimum(rest, reading.room[rows])
    reading.prompt[rows] = piece
    reading.square[rows] = piece * (2 * done + piece)
    reading.room[rows] -= piece
    last = piece == rest
    reading.repeats[rows[~last]] = (-(-rest // np.maximum(piece, 1)) - 1)[~last]
    reading.rows.append(rows[last])
    reading.requests.append(head[last])
    state.head[rows[last]] = -1
    state.done[rows] += np.where(last, -done, 0)


def _let_in(state: ServerState, reading: PrefillBatch, barred: Mask) -> None:
    """Admit waiting requests while servers have free seats, cache blocks and token budget.

    Each server admits one request at a time.
    """
    rows = np.flatnonzero(_may(state, reading) & ~barred)
    if not len(rows):
        return
    plan = state.plan
    grown = np.ones_like(rows)
    free = np.zeros_like(reading.room)
    free[rows] = plan.blocks[rows] - count_blocks(state, rows, grown)
    seats = plan.seats - state.running
    for ended, read in zip(reading.rows, reading.requests, strict=True):
        seats[ended] -= 1
        free[ended] -= -(-state.need[ended, read] // plan.block[ended])
    while len(rows):
        who = _first(state, rows)
        need = state.need[rows, who]
        blocks = -(-need // plan.block[rows])
        fits = (seats[rows] > 0) & (blocks <= free[rows])
        fits &= plan.chunked[rows] | (need <= reading.room[rows])
        rows, who, need, blocks = rows[fits], who[fits], need[fits], blocks[fits]
        seats[rows] -= 1
        free[rows] -= blocks
        _enter(state, reading, rows, who)
        rows = rows[_may(state, reading)[rows]]


def _enter(state: ServerState, reading: PrefillBatch, rows: Ints, who: Ints) -> None:
    need = state.need[rows, who]
    piece = np.minimum(need, reading.room[rows])
    reading.prompt[rows] += piece
    reading.square[rows] += piece * piece
    reading.room[rows] -= piece
    again = state.depth[rows] > 0
    state.depth[rows] -= again
    state.next[rows] += ~again
    before = state.started[rows, who]
    state.started[rows, who] = np.where(np.isnan(before), state.now[rows], before)
    whole = piece == need
    state.head[rows[~whole]] = who[~whole]
    state.done[rows[~whole]] = piece[~whole]
    reading.rows.append(rows[whole])
    reading.requests.append(who[whole])


def _may(state: ServerState, reading: PrefillBatch) -> Mask:
    """Return the mask of servers that may admit a request, (n,).

    A request waits, no prompt is unfinished, and the token budget has room.
    """
    here = waits(state)
    return here & (state.head < 0) & (reading.room > 0)


def waits(state: ServerState) -> Mask:
    """Return the mask of servers with an arrived request not yet in prefill or decode, (n,)."""
    return (state.depth > 0) | (next_arrival(state) <= state.now)


def next_arrival(state: ServerState) -> Floats:
    """Return the arrival time of the first request never admitted, (n,); infinite if none.

    The time may be in the past.
    """
    width = state.arrival.shape[1]
    at = state.arrival[np.arange(len(state.next)), np.minimum(state.next, width - 1)]
    return np.asarray(np.where(state.next < state.count, at, np.inf), dtype=np.float64)


def _first(state: ServerState, rows: Ints) -> Ints:
    top = state.stack[rows, np.maximum(state.depth[rows] - 1, 0)]
    return np.where(state.depth[rows] > 0, top, state.next[rows])
