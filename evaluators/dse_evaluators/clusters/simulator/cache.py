"""Paged KV cache of simulated servers: blocks in use, steps until it is full, and eviction."""

from __future__ import annotations

import numpy as np

from dse.core.values import Ints, Mask
from dse_evaluators.clusters.simulator.state import NEVER, ServerState


def count_blocks(state: ServerState, rows: Ints, steps: Ints) -> Ints:
    """Return the cache blocks that r servers use after ``steps`` more tokens per sequence, (r,).

    ``rows`` are the indices of the r servers. The last token of a sequence is cached only when the
    next one is generated. A chunked prompt holds the blocks of all its tokens from its first chunk
    on.
    """
    kept = state.full[rows] - state.ends[rows] + (state.step[rows] - 1 + steps)[:, None]
    # Requests that do not run end at NEVER, and keep nothing. Quotients of such numbers round
    # exactly, and are several times faster than of integers.
    blocks = np.maximum(kept, 0) / state.plan.block[rows][:, None]
    np.ceil(blocks, out=blocks)
    return blocks.sum(axis=1).astype(np.int64) + count_prompt_blocks(state, rows)


def count_prompt_blocks(state: ServerState, rows: Ints) -> Ints:
    """Return the KV cache blocks of each server's unfinished prompt, (r,); 0 if it has none."""
    head = state.head[rows]
    need = state.need[rows, np.maximum(head, 0)]
    return np.where(head >= 0, -(-need // state.plan.block[rows]), 0)


def steps_in_room(state: ServerState, most: Ints) -> Ints:
    """Return how many more tokens per sequence fit into n servers' caches, up to ``most``, (n,).

    The count is the same for all running sequences of a server.
    """
    every = np.arange(len(most))
    found = most.copy()
    most_kept = state.context + state.running * (most + state.plan.block)  # an upper bound
    tight = most_kept > (state.plan.blocks - count_prompt_blocks(state, every)) * state.plan.block
    rows = np.flatnonzero(tight & (state.running > 0) & (most > 0))
    if len(rows):
        found[rows] = _bisect_steps(state, rows, most[rows])
    return found


def evict(state: ServerState) -> Mask:
    """Evict the newest requests of servers whose KV cache has no room for one more token each.

    The result is the mask of the servers with evictions, (n,).

    Source:
        Kwon et al.: PagedAttention, 2023, section 4.5 (the latest request is evicted first,
        and recomputed later).
    """
    evicted = np.zeros(len(state.now), dtype=bool)
    one = np.ones(len(state.now), dtype=np.int64)
    while True:
        rows = np.flatnonzero(steps_in_room(state, one) < 1)
        if not len(rows):
            return evicted
        evicted[rows] = True
        state.evictions[rows] += 1
        reads = state.head[rows] >= 0
        _evict_head(state, rows[reads])
        _evict_text(state, rows[~reads])


def _bisect_steps(state: ServerState, rows: Ints, most: Ints) -> Ints:
    low, high = np.zeros_like(most), most + 1  # low fits or is 0, high does not fit
    if (fits := count_blocks(state, rows, most) <= state.plan.blocks[rows]).any():
        low = np.where(fits, most, low)
    while (high - low > 1).any():
        middle = (low + high) // 2
        fits = count_blocks(state, rows, middle) <= state.plan.blocks[rows]
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def _evict_head(state: ServerState, rows: Ints) -> None:
    _push(state, rows, state.head[rows])
    state.head[rows] = -1
    state.done[rows] = 0


def _evict_text(state: ServerState, rows: Ints) -> None:
    width = state.ends.shape[1]
    newest = width - 1 - np.argmax(state.ends[rows, ::-1] < NEVER, axis=1)
    left = state.ends[rows, newest] - state.step[rows]
    tokens = state.full[rows, newest] - left
    state.left[rows, newest] = left
    state.need[rows, newest] = tokens
    state.ends[rows, newest] = NEVER
    state.soonest[rows] = state.ends[rows].min(axis=1)
    state.running[rows] -= 1
    state.context[rows] -= tokens
    _push(state, rows, newest)


def _push(state: ServerState, rows: Ints, requests: Ints) -> None:
    state.stack[rows, state.depth[rows]] = requests
    state.depth[rows] += 1
