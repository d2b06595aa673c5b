"""Two streams that keep their order, played over n clusters at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.two_streams.order import Order, StreamStep

_AT_ONCE = 1024
"""Rows whose clocks stay in a core's cache through all steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSchedule:
    """Seconds of all passes, (n,), and exposed communication of each work, (n,)."""

    total_s: Floats
    exposed_s: Mapping[int, Floats]


def play(order: Order, seconds: Sequence[Floats]) -> StreamSchedule:
    """An iteration whose works take so long, each (n,); a pass starts when the last one is over.

    A step starts when its stream is free and what it waits for is over. Communication is exposed
    while it runs and the other stream has nothing to do; both are never idle at once.
    """
    rows = len(seconds[0])
    total_s = np.zeros(rows)
    exposed_s = {place: np.zeros(rows) for place, work in enumerate(order.works) if work.talks}
    for start in range(0, rows, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        own = [np.ascontiguousarray(each[some]) for each in seconds]
        bare = {place: each[some] for place, each in exposed_s.items()}
        for steps in order.passes:
            total_s[some] += _pass_s(steps, own, bare)
    return StreamSchedule(total_s=total_s, exposed_s=exposed_s)


def _pass_s(
    steps: Sequence[StreamStep], seconds: Sequence[Floats], exposed_s: Mapping[int, Floats]
) -> Floats:
    """Return the seconds of one pass, (n,); add exposed communication to ``exposed_s``."""
    computed = talked = np.zeros_like(seconds[0])
    ends = list[Floats]()
    hidden = deque[tuple[int, int, Floats, Floats]]()  # as yet: place, work, start, end
    for place, step in enumerate(steps):
        if step.talks:
            start = talked if step.waits < 0 else np.maximum(talked, ends[step.waits])
            talked = start + seconds[step.work]
            ends.append(talked)
            hidden.append((place, step.work, start, talked))
            continue
        if step.waits >= 0:
            while hidden and hidden[0][0] <= step.waits:
                _expose(hidden.popleft(), computed, exposed_s)
            computed = np.maximum(computed, ends[step.waits])
        computed = computed + seconds[step.work]
        ends.append(computed)
    while hidden:
        _expose(hidden.popleft(), computed, exposed_s)
    return np.maximum(computed, talked)


def _expose(
    one: tuple[int, int, Floats, Floats], computed: Floats, exposed_s: Mapping[int, Floats]
) -> None:
    """Add the part of a communication after the end of all computing independent of it."""
    _, work, start, end = one
    left = end - np.maximum(start, computed)
    exposed_s[work] += np.maximum(left, 0.0, out=left)
