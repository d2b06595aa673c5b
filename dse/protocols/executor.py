"""Interface of executors, which run tasks, and the tasks themselves.

A capability that is an attribute, such as ``on_report``, is recognised by its presence: the
constructor has to set a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dse.core.design import Design
from dse.core.trial import Event, Outcome
from dse.protocols.capability import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Evaluation task for an executor: one design, with the metrics that are already known.

    ``given`` holds the known metrics and ``spread`` their standard errors. ``only`` holds the
    labels of the evaluators to run; ``None`` runs all of them. ``attempt`` is the number of earlier
    attempts that were abandoned. ``folder`` is the path in which the evaluation may store
    checkpoints over all attempts; it is empty in a study without measured evaluators. If ``again``
    is true, an outcome stored in the folder was already collected and must not be reused.
    """

    number: int
    design: Design
    given: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    only: frozenset[str] | None = None
    attempt: int = 0
    folder: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Resources that a task needs of its machine; 0 leaves a resource unspecified.

    ``cpu`` and ``gpu`` are numbers of devices; ``gpu`` may be a fraction. ``custom`` holds amounts
    of user-defined resources that the nodes of a cluster offer, such as an attached board.
    """

    cpu: float = 0.0
    gpu: float = 0.0
    memory_bytes: int = 0
    custom: Mapping[str, float] = field(default_factory=dict)

    def joined(self, other: Needs) -> Needs:
        """Return the larger amount of each resource, as two steps run in sequence need it."""
        return Needs(
            cpu=max(self.cpu, other.cpu),
            gpu=max(self.gpu, other.gpu),
            memory_bytes=max(self.memory_bytes, other.memory_bytes),
            custom={
                name: max(self.custom.get(name, 0.0), other.custom.get(name, 0.0))
                for name in sorted({*self.custom, *other.custom})
            },
        )


class Executor(Protocol):
    """Executor: runs evaluation tasks, possibly in other processes or on other machines.

    An executor is constructed with ``(work, **options)``; ``work`` is a function from tasks to
    outcomes. Optional abilities of work functions and executors are further protocols of this
    module.

    Laws:
        - Every task that was submitted is collected exactly once.
        - A task whose worker crashes or hangs is collected as failed, with the reason.
        - ``work`` is called where the executor chooses, and may be pickled to get there.
        - After ``close`` no worker is left.
    """

    capacity: int
    """Number of tasks that the executor holds at once."""
    barrier: bool
    """Whether all submitted tasks are collected together."""

    def submit(self, task: Task) -> None:
        """Accept a task for evaluation."""
        ...

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        """Wait for outcomes of finished tasks, and return them by trial number.

        Args:
            timeout_s: the maximum time to wait, in seconds; ``None`` waits without limit.

        Returns:
            At least one outcome; none after ``timeout_s``, or at once if no task is submitted.
        """
        ...

    def close(self) -> None:
        """Stop all workers of the executor immediately."""
        ...


Work = Callable[[Sequence[Task]], list[Outcome]]


@runtime_checkable
class NeedsResources(Protocol, metaclass=Capability):
    """Work function that declares the CPUs, GPUs and other resources that each task needs."""

    needs: Needs


@runtime_checkable
class WaitsForTurn(Protocol, metaclass=Capability):
    """Work function that may wait for a free machine, which must not count as evaluation time."""

    on_wait: Callable[[str], None]
    """Function that the executor assigns; called with ``waits`` before a wait, and with
    ``goes on`` after it."""


@runtime_checkable
class ReportsIntermediate(Protocol, metaclass=Capability):
    """Work function or executor that passes on intermediate metrics, for early stopping."""

    on_report: Callable[[int, int, Mapping[str, float]], bool]
    """Function that the study assigns: from a trial's number, a step and its metrics to whether the
    evaluation has to stop."""


@runtime_checkable
class ReportsBegin(Protocol, metaclass=Capability):
    """Executor that reports when a worker begins a task.

    If an executor does not report it, a task counts as begun when it is submitted.
    """

    on_begin: Callable[[int, float], None]
    """Function that the study assigns; ``collect`` calls it with the trial's number and the wall
    clock in seconds since 1970."""


@runtime_checkable
class HasEvents(Protocol, metaclass=Capability):
    """Executor that reports events to the user, such as the loss of a cluster node."""

    def events(self) -> list[Event]:
        """Return the events that occurred since the last call."""
        ...


@runtime_checkable
class EndedByCaller(Protocol, metaclass=Capability):
    """Executor whose tasks are evaluated by the calling program, which also ends the run."""

    ended: str
    """The reason why the run has to end; empty while it continues."""

    def report_exhaustion(self) -> None:
        """Record that the optimizer can propose no further design at present."""
        ...
