"""Simulation of the in-order compute and communication streams on n clusters at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.two_streams.order import Order, StreamStep

_AT_ONCE = 1024
"""Rows simulated at once: few enough that their arrays stay in a core's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSchedule:
    """Total seconds, (n,), and exposed seconds of each communication by work index, (n,)."""

    total_s: Floats
    exposed_s: Mapping[int, Floats]


def play(order: Order, seconds: Sequence[Floats]) -> StreamSchedule:
    """Simulate an iteration; a pass starts when the previous one has ended.

    A step starts when its stream is free and the step that it waits for has ended. Communication is
    exposed while it runs and the compute stream is idle; both are never idle at once.

    Args:
        order: the steps of each pass.
        seconds: duration of each of ``order.works``, (n,) each.
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
    hidden = deque[tuple[int, int, Floats, Floats]]()  # not yet counted: place, work, start, end
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
    """Add to ``exposed_s`` the seconds of a communication after compute ended so far."""
    _, work, start, end = one
    left = end - np.maximum(start, computed)
    exposed_s[work] += np.maximum(left, 0.0, out=left)
