"""Pinning of the calling thread to the processors that have least to do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dse.evaluation.timing.interference import busy_by_cpu

_SAMPLE_S = 0.05


@contextmanager
def pinned(cpus: int) -> Iterator[tuple[int, ...]]:
    """Keep the calling thread, and threads that it starts, on some processors.

    Of the processors that the thread may use, the least busy ones are chosen. Threads that exist
    already, such as the threads of a pool, keep their processors.

    Args:
        cpus: number of processors; 0 leaves the thread as it is.

    Returns:
        The numbers of the processors; empty if nothing was pinned because ``cpus`` is 0, the system
        does not allow it, or it has no such call.
    """
    chosen = _select_quietest(cpus) if cpus else ()
    if not chosen:
        yield ()
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, chosen)
    except OSError:
        yield ()
        return
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, before)


def _select_quietest(cpus: int) -> tuple[int, ...]:
    if not hasattr(os, "sched_getaffinity"):
        return ()
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) <= cpus:
        return tuple(allowed)
    before = busy_by_cpu()
    time.sleep(_SAMPLE_S)
    after = busy_by_cpu()
    ticks = {cpu: after.get(cpu, 0) - before.get(cpu, 0) for cpu in allowed}
    return tuple(sorted(allowed, key=lambda cpu: (ticks[cpu], cpu))[:cpus])
