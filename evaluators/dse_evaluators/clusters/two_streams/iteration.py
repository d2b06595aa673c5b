"""Time and memory of an iteration with one parallel layout on n clusters."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.two_streams.machines import COLLECTIVES
from dse_evaluators.clusters.two_streams.order import IterationTask, Order, StreamStep
from dse_evaluators.clusters.two_streams.work_time import MOVES, TwoStreamsJob

PARTS = ("compute", "embedding", *(f"exposed_{name}" for name in COLLECTIVES))
"""Parts of an iteration's time."""

_LEARNT = 3.0
"""Memory of a trained weight, in weights: with gradient and optimizer state three per weight.

Hsia et al., ISCA 2024; it agrees with their sheets (samhsia/MADMax) to the printed digits. That a
frozen weight is stored once is an assumption of this project.
"""

_AT_ONCE = 1024
"""Rows simulated at once: few enough that their arrays stay in a core's cache."""


def times(job: TwoStreamsJob, steps: Order) -> Mapping[str, Floats]:
    """Return the seconds of an iteration, of its compute and of each collective, (n,) each.

    Names with ``exposed_`` give the seconds of a collective during which nothing is computed.
    """
    seconds = [job.work_s(work) for work in steps.works]
    played = play(steps, seconds)
    often = Counter(step.work for one in steps.passes for step in one)
    zero = np.zeros_like(played.total_s)
    spent = dict.fromkeys(PARTS, zero) | dict.fromkeys(COLLECTIVES, zero)
    for place, work in enumerate(steps.works):
        whole_s = often[place] * seconds[place]
        if not work.talks:
            part = "embedding" if work.role == "lookup" else "compute"
            spent[part] = spent[part] + whole_s
            continue
        name = MOVES[work.role]
        spent[name] = spent[name] + whole_s
        spent[f"exposed_{name}"] = spent[f"exposed_{name}"] + played.exposed_s[place]
    return {"iteration": played.total_s, **spent}


def memory_bytes(job: TwoStreamsJob, task: IterationTask) -> Mapping[str, Floats]:
    """Return the bytes per device of dense layers and of embedding tables, (n,) each.

    The bytes are those of weights, gradients and optimizer state; activations are left out, as in
    MAD-Max.
    """
    model = job.model
    dense = sum(unit.weights * _states(unit.stack, task) for unit in model.units)
    tables = model.table_weights * _states("embedding", task)
    return {
        "dense": dense * model.weight_bytes / job.dense.shards,
        "embedding": tables * model.table_weight_bytes / job.embedding.shards,
    }


def _states(stack: str, task: IterationTask) -> float:
    return _LEARNT if task.learns and stack not in task.frozen else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSchedule:
    """Seconds of n iterations, (n,), and of the exposed time of each communication step."""

    total_s: Floats
    exposed_s: Mapping[int, Floats]


def play(order: Order, seconds: Sequence[Floats]) -> StreamSchedule:
    """Simulate the passes of an iteration on a computing and a communicating stream.

    A pass starts when the previous one has ended. A step starts when its stream is free and the
    step that it waits for has ended. Communication is exposed while it runs and the compute stream
    is idle; both are never idle at once.

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
