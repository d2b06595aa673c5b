"""Failed outcomes of tasks that crashed, were lost or raised an exception."""

from __future__ import annotations

from dse.core.metric import Failure, FailureKind
from dse.core.trial import Outcome, State
from dse.protocols import Task, Work


def build_failure(kind: FailureKind, reason: str, cost_s: float = 0.0) -> Outcome:
    """Return the outcome of a failed evaluation, with the kind and reason of the failure."""
    return Outcome(state=State.FAILED, failure=Failure(kind=kind, reason=reason), cost_s=cost_s)


def build_error_outcome(error: BaseException) -> Outcome:
    """Return the outcome of a task whose evaluation raised an exception."""
    kind: FailureKind = "memory" if isinstance(error, MemoryError) else "raised"
    return build_failure(kind, f"{type(error).__name__}: {error}")


def alone(work: Work, task: Task) -> Outcome:
    """Evaluate one task with ``work``; return its outcome, a failed one after an exception."""
    try:
        (outcome,) = work([task])
    except Exception as error:  # noqa: BLE001 - an exception fails only its task
        return build_error_outcome(error)
    return outcome
