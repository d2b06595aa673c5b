"""Failed outcomes of tasks that crashed, were lost or raised an exception."""

from __future__ import annotations

from dse.core.metric import Fault, FaultKind
from dse.core.trial import Outcome, State
from dse.protocols import Task, Work


def build_failure(kind: FaultKind, reason: str, cost_s: float = 0.0) -> Outcome:
    """Return a failed outcome with a fault of the given kind."""
    return Outcome(state=State.FAILED, fault=Fault(kind=kind, reason=reason), cost_s=cost_s)


def build_error_outcome(error: BaseException) -> Outcome:
    """Return the failed outcome of a task whose work raised an exception."""
    kind: FaultKind = "memory" if isinstance(error, MemoryError) else "raised"
    return build_failure(kind, f"{type(error).__name__}: {error}")


def alone(work: Work, task: Task) -> Outcome:
    """Run the work on a single task and return its outcome; an exception becomes a failure."""
    try:
        (outcome,) = work([task])
    except Exception as error:  # noqa: BLE001 - an exception fails only its task
        return build_error_outcome(error)
    return outcome
