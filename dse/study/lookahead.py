"""Number of designs to ask ahead of need, and pause between two looks at the queue."""

from __future__ import annotations

import math

from dse.core.trial import Queue

FIRST = 16
"""Designs asked at once while it is unknown how long an ask for many takes."""

PATIENCE_S = 60.0
"""An ask should not take longer for the sake of others: they wait for its first design, too."""

_MARGIN = 1.5
"""Trials begin and end in bursts: so much more than the mean is taken while an ask lasts."""

_SHORTEST_S, _LONGEST_S = 0.01, 1.0
"""Between two looks at the queue; each wait in vain doubles it."""

_FEW = 16
"""Drivers that may all look as soon as that."""

_LOOKS_PER_S = 100.0
"""Looks of all waiting drivers together: more of them wait longer, one by one."""

_WINDOW = 8
"""Finished trials by which a rate is estimated, at least."""


class Lookahead:
    """Estimates the need for designs from what a driver sees whenever it comes to the queue.

    Pure: it has no clock, no storage and no chance. A driver alone needs nothing ahead, and where
    an ask is quick, compared with how often one is needed, each driver best asks for itself, with
    all that is known. Beyond that the queue has to last while an ask is made.
    """

    def __init__(self) -> None:
        self._anchors: list[tuple[float, int]] = []
        self._rate_per_s = 0.0

    def note(self, now_s: float, queue: Queue) -> None:
        """See how the study stands now, by the driver's own clock."""
        here = now_s, queue.finished
        if not self._anchors:
            self._anchors = [here, here]
        (then_s, before), (last_s, last) = self._anchors
        if now_s > then_s and queue.finished > before:
            self._rate_per_s = (queue.finished - before) / (now_s - then_s)
        if queue.finished - last >= max(_WINDOW, queue.drivers):
            self._anchors = [(last_s, last), here]

    def low(self, queue: Queue) -> int:
        """Return how many designs have to wait in the queue, lest it is empty during an ask."""
        return math.floor(_MARGIN * self._rate_per_s * queue.ask_s)

    def count(self, queue: Queue, *, own: int, holds: bool, lost: int) -> int:
        """Return how many designs to ask beside the driver's own.

        Args:
            queue: how the study stands.
            own: designs that the driver asks for itself; with 0, nothing is asked unless the
                queue is about to run empty.
            holds: the driver holds a trial.
            lost: drivers that have not left and are known to be lost.
        """
        others = queue.drivers - lost - 1
        low = self.low(queue)
        if others <= 0 or (own <= 0 and queue.waiting >= low):
            return 0
        each = max(own, 1)  # who has nothing to do wants as much as this one
        idle = max(0, others - (queue.holders - holds))
        wanted = min(idle * each + 2 * low, 2 * others * each) - queue.waiting
        return max(0, min(wanted, self._most(queue) - own))

    def pause_s(self, waits: int, drivers: int) -> float:
        """Return how long to wait after so many looks in vain, among so many drivers."""
        shortest_s = _SHORTEST_S * max(1.0, drivers / _FEW)
        longest_s = max(_LONGEST_S, drivers / _LOOKS_PER_S)
        return min(shortest_s * 2.0 ** min(waits, 30), longest_s)

    @staticmethod
    def _most(queue: Queue) -> int:
        """Return the most designs of one ask, going by what the last one took."""
        if queue.asked <= 0 or queue.ask_s <= 0.0:
            return FIRST
        return max(FIRST, int(PATIENCE_S * queue.asked / queue.ask_s))
