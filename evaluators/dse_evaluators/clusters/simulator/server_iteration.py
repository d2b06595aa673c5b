"""Simulation step: advance each of n servers over all iterations until its next event.

Between two events (arrival, finished sequence, finished prompt, full cache) consecutive iterations
differ by one token per sequence, so a run of them is summed in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse_evaluators.clusters.simulator.admission import PrefillBatch, admit, next_arrival
from dse_evaluators.clusters.simulator.cache import evict, steps_in_room
from dse_evaluators.clusters.simulator.gaps import Gaps
from dse_evaluators.clusters.simulator.server_settings import IterationWork
from dse_evaluators.clusters.simulator.state import NEVER, ServerState, find_places


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationCost:
    """Time and energy of one iteration of each server; every field is (n,)."""

    seconds: Floats
    compute_j: Floats
    """Joules of arithmetic on all devices, above their base power."""
    memory_j: Floats
    """Joules of memory traffic on all devices, above their base power."""


Tariff = Callable[[IterationWork], IterationCost]
"""Function that computes the cost of one iteration of each row."""

Prices = Callable[[Ints], Tariff]
"""Function that returns the tariff of the given rows, in this order; rows may repeat."""


def advance(state: ServerState, gaps: Gaps, prices: Prices) -> None:
    """Advance every server in place to its next event.

    Events are an arrival, the end of a sequence, the end of a prefill, and a full cache.

    Args:
        state: the servers; changed in place.
        gaps: statistics of the gaps between tokens; changed in place.
        prices: function that returns the cost function of the given servers.
    """
    _wake(state)
    reading = admit(state, evict(state))
    writes = (state.running > 0) & ~(state.plan.halting & (reading.prompt > 0))
    most = _most(state, reading, writes)
    first = _work(state, reading, writes)
    costs = _both(prices, state, reading, first, most)
    times = _Run(start=costs[0].seconds, end=costs[1].seconds, most=most)
    steps = np.where(most > 0, times.until(_patience(state, reading)), 0)
    state.seen = np.maximum(state.seen, (first.sequences + first.prompt).astype(np.int64))
    _spend(state, costs, most, steps)
    _pass(state, reading, writes, steps, times, gaps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Up to ``most`` iterations of n servers, whose cost rises linearly to ``end``; each (n,)."""

    start: Floats
    end: Floats
    most: Ints

    def total(self, steps: Ints) -> Floats:
        """Return the total cost of the first ``steps`` iterations, (n,)."""
        return steps * self.start + self._slope * steps * (steps - 1) / 2.0

    def until(self, seconds: Floats) -> Ints:
        """Return the fewest iterations that take ``seconds`` or more, limited to ``most``, (n,)."""
        near = np.minimum(seconds, self.total(self.most))
        b = self.start - self._slope / 2.0
        root = 2.0 * near / (b + np.sqrt(b * b + 2.0 * self._slope * near))
        steps = np.clip(np.ceil(root - 1e-9), 1, np.maximum(self.most, 1)).astype(np.int64)
        return np.where(self.total(steps) < near, np.minimum(steps + 1, self.most), steps)

    @property
    def _slope(self) -> Floats:
        return (self.end - self.start) / np.maximum(self.most - 1, 1)


def _wake(state: ServerState) -> None:
    """Advance the clock of idle servers to their next arrival."""
    rows = np.flatnonzero((state.running == 0) & (state.head < 0) & (state.depth == 0))
    coming = next_arrival(state, rows)
    coming = np.where(np.isfinite(coming), coming, -np.inf)
    state.now[rows] = np.maximum(coming, state.now[rows])


def _most(state: ServerState, reading: PrefillBatch, writes: Mask) -> Ints:
    """Return how many iterations n servers can run with unchanged sequences, (n,); 0: no work.

    No sequence or prompt ends before the last of these iterations, and the cache has room for all
    tokens.
    """
    soonest = np.where(writes, state.soonest - state.step, NEVER)
    pieces = np.where(reading.repeats > 0, reading.repeats, 1)
    most = np.minimum(np.where(reading.prompt > 0, pieces, NEVER), soonest)
    most = np.where(writes | (reading.prompt > 0), most, 0)
    growing = np.where(writes & (most > 1), most, 0)
    return np.where(growing > 0, np.maximum(steps_in_room(state, growing), 1), most)


def _patience(state: ServerState, reading: PrefillBatch) -> Floats:
    """Return the seconds until the arrival of a request that could be admitted at once, (n,)."""
    slot = (state.running < state.plan.slots) & (reading.prompt == 0) & (state.depth == 0)
    rows = np.flatnonzero(slot)
    left = next_arrival(state, rows) - state.now[rows]
    found = np.full(len(slot), np.inf)
    found[rows] = np.where(left > 0, left, np.inf)
    return found


def _work(state: ServerState, reading: PrefillBatch, writes: Mask) -> IterationWork:
    """Return the sequences and tokens of the next iteration."""
    return IterationWork(
        sequences=np.where(writes, state.running, 0).astype(np.float64),
        context=np.where(writes, state.context, 0).astype(np.float64),
        prompt=reading.prompt.astype(np.float64),
        square=reading.square.astype(np.float64),
    )


def _both(
    prices: Prices, state: ServerState, reading: PrefillBatch, first: IterationWork, most: Ints
) -> tuple[IterationCost, IterationCost]:
    """Return the costs of the first and the last of ``most`` iterations, from a single call.

    Where there is one iteration, it is both.
    """
    rows = np.flatnonzero(most > 1)
    ahead, prompt = most[rows] - 1, reading.prompt[rows]
    grown = state.running[rows] * ahead * (first.sequences[rows] > 0)
    last = IterationWork(
        sequences=first.sequences[rows],
        context=first.context[rows] + grown,
        prompt=first.prompt[rows],
        square=(reading.square[rows] + 2 * prompt * prompt * ahead).astype(np.float64),
    )
    both = IterationWork(
        **{
            each.name: np.concatenate([getattr(first, each.name), getattr(last, each.name)])
            for each in fields(IterationWork)
        }
    )
    cost = prices(np.concatenate([state.row, state.row[rows]]))(both)
    n = len(most)
    start = {each.name: getattr(cost, each.name)[:n] for each in fields(IterationCost)}
    end = {name: values.copy() for name, values in start.items()}
    for name, values in end.items():
        values[rows] = getattr(cost, name)[n:]
    return IterationCost(**start), IterationCost(**end)


def _spend(
    state: ServerState, costs: tuple[IterationCost, IterationCost], most: Ints, steps: Ints
) -> None:
    for name in ("compute_j", "memory_j"):
        line = _Run(start=getattr(costs[0], name), end=getattr(costs[1], name), most=most)
        setattr(state, name, getattr(state, name) + line.total(steps))


def _pass(
    state: ServerState, reading: PrefillBatch, writes: Mask, steps: Ints, times: _Run, gaps: Gaps
) -> None:
    """Advance n servers by ``steps`` iterations each; process prompts and sequences that end."""
    spent = times.total(steps)
    gaps.note(state, writes, steps, spent, times.start)
    state.busy = state.busy + spent
    state.texts_s = state.texts_s + spent * state.running
    state.now = state.now + spent
    wrote: Ints = np.where(writes, steps, 0)
    state.step = state.step + wrote
    state.context = state.context + wrote * state.running
    state.done = state.done + np.where(reading.repeats > 0, reading.prompt * steps, 0)
    for rows, requests in zip(reading.rows, reading.requests, strict=True):
        _begin(state, rows, requests)
    _end(state)


def _begin(state: ServerState, rows: Ints, requests: Ints) -> None:
    """Move requests from prefill to decode: the end of a prefill yields the first token."""
    before = state.first[rows, requests]
    state.first[rows, requests] = np.where(np.isnan(before), state.now[rows], before)
    ends = state.step[rows] + state.left[rows, requests] - 1
    state.ends[rows, requests] = ends
    state.soonest[rows] = np.minimum(state.soonest[rows], ends)
    state.running[rows] += 1
    state.context[rows] += state.need[rows, requests] + 1


def _end(state: ServerState) -> None:
    """Remove finished sequences, and issue the next requests of their clients."""
    rows = np.flatnonzero(state.soonest <= state.step)
    if not len(rows):
        return
    # Few of many requests end: indices are faster than masks over all of them.
    ends = state.ends[rows]
    place, over = find_places(ends <= state.step[rows, None])
    ends[place, over] = NEVER
    state.soonest[rows] = ends.min(axis=1)
    ended = rows[place], over
    now = state.now[rows]
    state.finish[ended] = now[place]
    state.ends[ended] = NEVER
    count = np.bincount(place, minlength=len(rows))
    state.running[rows] -= count
    # Sums of fewer than 2 ** 53 tokens are exact.
    tokens = np.bincount(place, weights=state.full[ended], minlength=len(rows))
    state.context[rows] -= tokens.astype(np.int64)
    state.ended[rows] += count
    before = state.issued[rows]
    after = np.minimum(before + count, state.count[rows])
    if np.array_equal(before, after):
        return
    at = np.arange(state.ends.shape[1])
    asks = (at >= before[:, None]) & (at < after[:, None])
    state.arrival[rows] = np.where(asks, now[:, None], state.arrival[rows])
    state.issued[rows] = after
