"""Retry policy: how often trials are evaluated again after each kind of fault."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.metric import Fault, FaultKind
from dse.core.trial import Attempt

RETRIES: Mapping[FaultKind, int] = {"lost": 3, "memory": 1}
"""Default number of retries by kind of fault.

A lost machine is rarely the design's fault, but after four losses the design itself is suspect and
its trial is failed. Memory may have run out because of other processes; this is retried only once,
because the retry may in turn starve others.
"""


def again(
    fault: Fault | None, attempts: list[Attempt], number: int, retries: Mapping[FaultKind, int]
) -> bool:
    """Return whether a trial that ended with this fault is to be evaluated again.

    Args:
        fault: the fault of the trial; ``None`` if it has metrics.
        attempts: the abandoned attempts at all trials of the study.
        number: the trial's number.
        retries: the maximum number of retries by kind of fault; 0 for a missing kind.
    """
    if fault is None or fault.kind == "infeasible":
        return False
    before = [a for a in attempts if a.number == number and a.fault is not None]
    same = sum(a.fault.kind == fault.kind for a in before if a.fault is not None)
    return same < retries.get(fault.kind, 0)
