"""The blocks of a server's cache: who holds how many, for how long there is room, who loses his."""

from __future__ import annotations

import numpy as np

from dse.core.values import Ints, Mask
from dse_evaluators.clusters.simulator.state import NEVER, ServerState


def count_blocks(state: ServerState, rows: Ints, steps: Ints) -> Ints:
    """Return the blocks in some rows after ``steps`` more tokens per running sequence, (r,).

    The last token of a text is not kept before the next one is written. A prompt that is read in
    pieces holds the blocks of all its tokens from its first piece on.
    """
    ends = state.ends[rows]
    kept = state.full[rows] - ends + (state.step[rows] - 1 + steps)[:, None]
    block = state.plan.block[rows][:, None]
    blocks = np.where(ends < NEVER, -(-kept // block), 0).sum(axis=1)
    return np.asarray(blocks + count_prompt_blocks(state, rows), dtype=np.int64)


def count_prompt_blocks(state: ServerState, rows: Ints) -> Ints:
    """Return the blocks of the prompt that is read in chunks, (r,)."""
    head = state.head[rows]
    need = state.need[rows, np.maximum(head, 0)]
    return np.where(head >= 0, -(-need // state.plan.block[rows]), 0)


def steps_in_room(state: ServerState, most: Ints) -> Ints:
    """For how many more tokens of each text, up to so many, there is room; (n,)."""
    every = np.arange(len(most))
    found = most.copy()
    most_kept = state.context + state.running * (most + state.plan.block)  # no fewer than there are
    tight = most_kept > (state.plan.blocks - count_prompt_blocks(state, every)) * state.plan.block
    rows = np.flatnonzero(tight & (state.running > 0) & (most > 0))
    if len(rows):
        found[rows] = _bisect_steps(state, rows, most[rows])
    return found


def evict(state: ServerState) -> Mask:
    """Takes the cache of the newest requests where texts have no room for one more token; (n,).

    Source:
        Kwon et al.: PagedAttention, 2023, section 4.5 (the latest goes first and is recomputed).
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
    low, high = np.zeros_like(most), most + 1  # low has room or is 0, high has none
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
    state.running[rows] -= 1
    state.context[rows] -= tokens
    _push(state, rows, newest)


def _push(state: ServerState, rows: Ints, requests: Ints) -> None:
    state.stack[rows, state.depth[rows]] = requests
    state.depth[rows] += 1
