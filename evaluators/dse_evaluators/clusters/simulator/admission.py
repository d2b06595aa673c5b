"""Admission of prompts, complete or in chunks, to the next iteration of a server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse_evaluators.clusters.simulator.cache import count_blocks
from dse_evaluators.clusters.simulator.state import ServerState


@dataclass(slots=True, kw_only=True)
class PrefillBatch:
    """Prompts that n servers prefill in one iteration, as arrays.

    Arrays are (n,), except ``rows`` and ``requests``.
    """

    prompt: Ints
    """Prefill tokens."""
    square: Ints
    """Sum of ``c (2 p + c)`` over chunks of c tokens after a prefix of p: 2 per query-key pair."""
    repeats: Ints
    """Iterations in a row with an equal chunk of the same prompt; 0: the chunk is not repeated."""
    room: Ints
    """Tokens left in the budget."""
    rows: list[Ints]
    requests: list[Ints]
    """Requests whose prefill ends in this iteration; each array is parallel to one of ``rows``."""


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
    """Admit waiting requests while servers have free slots, cache blocks and token budget.

    Each server admits one request at a time.
    """
    rows = np.flatnonzero(~barred)
    rows = rows[_may(state, reading, rows)]
    if not len(rows):
        return
    plan, chunked = state.plan, state.plan.chunked
    free = _FreeBlocks.of(state)
    slots = plan.slots - state.running
    for ended, read in zip(reading.rows, reading.requests, strict=True):
        slots[ended] -= 1
        free.least[ended] -= -(-state.need[ended, read] // plan.block[ended])
    while len(rows):
        who = _first(state, rows)
        need = state.need[rows, who]
        blocks = -(-need // plan.block[rows])
        fits = (slots[rows] > 0) & (chunked[rows] | (need <= reading.room[rows]))
        rows, who, blocks = rows[fits], who[fits], blocks[fits]
        fits = free.hold(state, rows, blocks)
        rows, who, blocks = rows[fits], who[fits], blocks[fits]
        slots[rows] -= 1
        free.least[rows] -= blocks
        _enter(state, reading, rows, who)
        rows = rows[_may(state, reading, rows)]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _FreeBlocks:
    """Free cache blocks of n servers, bounded from below until the exact number matters.

    The exact number takes a sum over all requests of a server, and seldom decides.
    """

    least: Ints
    """Lower bound of the free blocks, (n,)."""
    exact: Mask

    @staticmethod
    def of(state: ServerState) -> _FreeBlocks:
        """Return bounds of the blocks that are free after one more token of each sequence."""
        block = state.plan.block
        most_kept = state.context + state.running * (1 + block)
        least: Ints = state.plan.blocks - -(-most_kept // block)
        return _FreeBlocks(least=least, exact=np.zeros(len(block), dtype=bool))

    def hold(self, state: ServerState, rows: Ints, blocks: Ints) -> Mask:
        """Return whether the servers ``rows`` have ``blocks`` free blocks each, (r,)."""
        unsure = rows[(blocks > self.least[rows]) & ~self.exact[rows]]
        if len(unsure):
            block = state.plan.block[unsure]
            bound = -(-(state.context[unsure] + state.running[unsure] * (1 + block)) // block)
            used = count_blocks(state, unsure, np.ones_like(unsure))
            self.least[unsure] += bound - used
            self.exact[unsure] = True
        held: Mask = blocks <= self.least[rows]
        return held


def _may(state: ServerState, reading: PrefillBatch, rows: Ints) -> Mask:
    """Return the mask of the servers ``rows`` that may admit a request, (r,).

    A request waits, no prompt is unfinished, and the token budget has room.
    """
    waits = (state.depth[rows] > 0) | (next_arrival(state, rows) <= state.now[rows])
    return waits & (state.head[rows] < 0) & (reading.room[rows] > 0)


def next_arrival(state: ServerState, rows: Ints) -> Floats:
    """Return the arrival time of the first request that was never admitted, (r,), in seconds.

    The time may be in the past, and is infinite if no request is left.
    """
    width = state.arrival.shape[1]
    after = state.next[rows]
    at = state.arrival[rows, np.minimum(after, width - 1)]
    return np.asarray(np.where(after < state.count[rows], at, np.inf), dtype=np.float64)


def _first(state: ServerState, rows: Ints) -> Ints:
    top = state.stack[rows, np.maximum(state.depth[rows] - 1, 0)]
    return np.where(state.depth[rows] > 0, top, state.next[rows])
