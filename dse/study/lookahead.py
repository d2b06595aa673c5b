"""Policy for drivers that share a queue: how many designs to add ahead, how often to poll."""

from __future__ import annotations

import math

from dse.core.trial import Queue

FIRST = 16
"""Most designs per ask while the duration of a large ask is unknown."""

PATIENCE_S = 60.0
"""Longest ask in seconds that is extended for other drivers, which wait for its first design."""

_MARGIN = 1.5
"""Safety factor on the mean consumption during an ask, because trials end in bursts."""

_SHORTEST_S, _LONGEST_S = 0.01, 1.0
"""Shortest and longest pause between two polls of the queue; each poll in vain doubles it."""

_FEW = 16
"""Number of drivers up to which the shortest pause applies; beyond, it grows in proportion."""

_LOOKS_PER_S = 100.0
"""Upper bound on the polls per second of all waiting drivers together."""

_WINDOW = 8
"""Least number of finished trials from which a rate is estimated."""


class Lookahead:
    """Estimator of how many designs the processes of a study need, from the queue's states.

    The estimate is deterministic and uses no clock or storage. A single process needs no designs in
    advance. If a suggestion is fast relative to the demand, each process best requests designs for
    itself with the latest results. Otherwise the queue has to hold enough designs to last while
    suggestions are computed.
    """

    def __init__(self) -> None:
        self._anchors: list[tuple[float, int]] = []
        self._rate_per_s = 0.0

    def note(self, now_s: float, queue: Queue) -> None:
        """Update the estimated rate of finished trials from an observation of the queue.

        Args:
            now_s: time of the observation by the process's own clock.
            queue: the observed state.
        """
        here = now_s, queue.finished
        if not self._anchors:
            self._anchors = [here, here]
        (then_s, before), (last_s, last) = self._anchors
        if now_s > then_s and queue.finished > before:
            self._rate_per_s = (queue.finished - before) / (now_s - then_s)
        if queue.finished - last >= max(_WINDOW, queue.drivers):
            self._anchors = [(last_s, last), here]

    def low(self, queue: Queue) -> int:
        """Return how many designs must wait in the queue while new ones are computed."""
        return math.floor(_MARGIN * self._rate_per_s * queue.ask_s)

    def count(self, queue: Queue, *, own: int, holds: bool, lost: int) -> int:
        """Return how many designs to request beyond those that the process itself needs.

        Args:
            queue: the observed state of the queue.
            own: number of designs that the driver asks for itself; if 0, nothing is asked unless
                the queue is about to run empty.
            holds: whether the driver has a trial to evaluate already.
            lost: number of drivers that have not left and are known to be lost.
        """
        others = queue.drivers - lost - 1
        low = self.low(queue)
        if others <= 0 or (own <= 0 and queue.waiting >= low):
            return 0
        each = max(own, 1)  # an idle driver is assumed to want as many as this one
        idle = max(0, others - (queue.holders - holds))
        wanted = min(idle * each + 2 * low, 2 * others * each) - queue.waiting
        return max(0, min(wanted, self._most(queue) - own))

    def pause_s(self, waits: int, drivers: int) -> float:
        """Return the pause in seconds before the next poll of the queue.

        Args:
            waits: number of consecutive polls that found no trial.
            drivers: number of drivers of the study.
        """
        shortest_s = _SHORTEST_S * max(1.0, drivers / _FEW)
        longest_s = max(_LONGEST_S, drivers / _LOOKS_PER_S)
        return min(shortest_s * 2.0 ** min(waits, 30), longest_s)

    @staticmethod
    def _most(queue: Queue) -> int:
        """Return the maximum number of designs for one ask, so that it takes about ``PATIENCE_S``.

        The optimizer's time per design is taken from the last ask; the result is at least
        ``FIRST``.
        """
        if queue.asked <= 0 or queue.ask_s <= 0.0:
            return FIRST
        return max(FIRST, int(PATIENCE_S * queue.asked / queue.ask_s))
