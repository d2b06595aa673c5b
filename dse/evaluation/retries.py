"""Retries: transient faults, and the number of times that a trial is issued again."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.metric import Fault, FaultKind
from dse.core.trial import Attempt

RETRIES: Mapping[FaultKind, int] = {"lost": 3, "memory": 1}
"""What a study does that says nothing: a machine that was lost says little about the design.

It says a little: a design that has taken four drivers or workers with it is given up, and the study
goes on. Memory may be short because of others: that is tried once more, and no oftener, for it may
end others in turn.
"""


def again(
    fault: Fault | None, attempts: list[Attempt], number: int, retries: Mapping[FaultKind, int]
) -> bool:
    """True if a trial with this fault is to be issued once more.

    Args:
        fault: why it has no metrics; ``None`` where it has.
        attempts: those of the study that were given up before.
        number: of the trial.
        retries: how often, for each kind of fault; a kind that is missing never.
    """
    if fault is None or fault.kind == "infeasible":
        return False
    before = [a for a in attempts if a.number == number and a.fault is not None]
    same = sum(a.fault.kind == fault.kind for a in before if a.fault is not None)
    return same < retries.get(fault.kind, 0)
