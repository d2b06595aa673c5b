"""Histogram of the times between consecutive tokens, and each sequence's longest mean gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse_evaluators.clusters.simulator.state import NEVER, ServerState, find_places

_LEAST_S, _RATIO, _BINS = 1e-5, 1.01, 2320
"""Logarithmic histogram bins: gaps are resolved to half a percent, up to 1e5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Histogram of times between tokens (gaps) on n servers, and each sequence's slowest pace.

    The pace of a sequence is the exponential moving average of its gaps, in which a new gap has
    ``weight``; with 0 it is not computed. The time that an evicted sequence waits is not counted.
    The arrays are updated in place.
    """

    weight: float
    tokens: Ints  # (n, bins)
    wrote_at: Floats  # (n,), seconds of the last decode iteration
    pace: Floats  # (n, w), seconds; NaN before the second token
    slowest: Floats  # (n, w)

    @staticmethod
    def none(shape: tuple[int, ...], weight: float) -> Gaps:
        """Return empty statistics of token gaps for n servers of up to w requests each."""
        rows, width = shape
        kept = width if weight else 0
        return Gaps(
            weight=weight,
            tokens=np.zeros((rows, _BINS), dtype=np.int64),
            wrote_at=np.zeros(rows),
            pace=np.full((rows, kept), np.nan),
            slowest=np.zeros((rows, kept)),
        )

    def note(
        self, state: ServerState, writes: Mask, steps: Ints, spent: Floats, first: Floats
    ) -> None:
        """Count the token gaps of consecutive iterations (a run) with the same sequences.

        The iterations after the first are counted with their mean time.

        Args:
            state: the servers at the start of the run.
            writes: mask of the servers with decode in the run, (n,).
            steps: iterations of the run, (n,).
            spent: seconds of the run's iterations, (n,).
            first: seconds of the run's first iteration, (n,).
        """
        halted = writes & state.plan.halting & (self.wrote_at[state.row] < state.now)
        smooth, rough = np.flatnonzero(writes & ~halted), np.flatnonzero(halted)
        running = state.running
        self._count(state.row[smooth], spent[smooth] / steps[smooth], (running * steps)[smooth])
        rest = rough[steps[rough] > 1]
        gap = (spent[rest] - first[rest]) / (steps[rest] - 1)
        self._count(state.row[rest], gap, (running * (steps - 1))[rest])
        row, who = find_places(state.ends[rough] < NEVER)
        at = rough[row]
        since = np.maximum(state.first[at, who], self.wrote_at[state.row[at]])
        bins = _bins(state.now[at] + first[at] - since)
        np.add.at(self.tokens, (state.row[at], bins), 1)  # servers repeat
        if self.weight:
            self._follow(state, np.flatnonzero(writes), steps, spent, first)
        written = np.flatnonzero(writes)
        self.wrote_at[state.row[written]] = state.now[written] + spent[written]

    def _count(self, rows: Ints, gap: Floats, tokens: Ints) -> None:
        """Count tokens at one gap of each of the servers ``rows``, which are all different."""
        self.tokens[rows, _bins(gap)] += tokens

    def _follow(
        self, state: ServerState, rows: Ints, steps: Ints, spent: Floats, first: Floats
    ) -> None:
        """Update moving average and slowest pace of every sequence over consecutive iterations."""
        own = state.row[rows]
        on = state.ends[rows] < NEVER
        since = np.where(
            state.plan.halting[rows, None],
            np.fmax(state.first[rows], self.wrote_at[own, None]),
            state.now[rows, None],
        )
        gap = (state.now + first)[rows, None] - since
        pace = self.pace[own]
        after = np.where(np.isnan(pace), gap, pace + self.weight * (gap - pace))
        more = np.maximum(steps[rows] - 1, 0)
        mean = (spent - first)[rows] / np.maximum(more, 1)
        fades = (1.0 - self.weight) ** more
        end = mean[:, None] + fades[:, None] * (after - mean[:, None])
        worst = np.maximum(np.fmax(self.slowest[own], after), end)
        self.pace[own] = np.where(on, end, pace)
        self.slowest[own] = np.where(on, worst, self.slowest[own])


def _bins(gap: Floats) -> Ints:
    place = np.log(np.maximum(gap, _LEAST_S) / _LEAST_S) / np.log(_RATIO)
    return np.minimum(place.astype(np.int64), _BINS - 1)


def quantile(tokens: Ints, share: float) -> Floats:
    """Return a quantile (``share``, 0 to 1) of n servers' times between tokens [s], (n,).

    The quantile is 0 for a server without tokens.
    """
    below = np.cumsum(tokens, axis=1)
    place = np.argmax(below >= share * below[:, -1:], axis=1)
    found = _LEAST_S * _RATIO ** (place + 0.5)
    return np.where(below[:, -1] > 0, found, 0.0)
