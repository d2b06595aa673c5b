"""Outcomes of tasks whose work did not give one."""

from __future__ import annotations

from dse.core.metric import Fault, FaultKind
from dse.core.trial import Outcome, State
from dse.protocols import Task, Work


def build_failure(kind: FaultKind, reason: str, cost_s: float = 0.0) -> Outcome:
    """Return the failed outcome of a task that was lost."""
    return Outcome(state=State.FAILED, fault=Fault(kind=kind, reason=reason), cost_s=cost_s)


def build_error_outcome(error: BaseException) -> Outcome:
    """Return the failed outcome of a task whose work raised an exception."""
    kind: FaultKind = "memory" if isinstance(error, MemoryError) else "raised"
    return build_failure(kind, f"{type(error).__name__}: {error}")


def alone(work: Work, task: Task) -> Outcome:
    """Return the work's outcome of one task; any exception becomes a failure."""
    try:
        (outcome,) = work([task])
    except Exception as error:  # noqa: BLE001 - whatever work raises costs its task only
        return build_error_outcome(error)
    return outcome
