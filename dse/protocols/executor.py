"""Interface of executors, which run tasks, and the tasks themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dse.core.design import Design
from dse.core.trial import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A trial to be evaluated, with the metrics that need not be measured again.

    ``given`` holds the known metrics and ``spread`` their standard errors. ``only`` holds the
    labels of the evaluators to run; ``None`` runs all of them. ``attempt`` is the number of earlier
    attempts that were abandoned. ``folder`` is the path in which the evaluation may store
    checkpoints over all attempts; empty if nothing is measured. If ``again`` is true, an outcome
    stored in the folder was already collected and must not be reused.
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
        """Return the needs of a task that runs both in sequence: the maximum of each resource."""
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
    """Runner of tasks; constructed with ``(work, **options)``.

    ``work`` is a function from tasks to outcomes. Optional attributes of ``work``:
    ``needs``: the resources that one task needs. ``on_wait``: a function that the executor assigns;
    ``work`` calls it with ``waits`` before it waits for its turn on the machine, and with
    ``goes on`` afterwards, so that the wait does not count towards the task's time limit.

    Optional members of an executor: ``events()`` returns the events since the last call that matter
    to a user, such as the loss of a node. ``on_begin`` is a function that the study assigns;
    ``collect`` calls it with a trial's number and the wall-clock time at which a worker began the
    trial. Without ``on_begin``, a task counts as begun when it is submitted.

    Laws:
        - Every task that was submitted is collected exactly once.
        - A task whose worker crashes or hangs is collected as failed, with the reason.
        - ``work`` is called where the executor chooses, and may be pickled to get there.
        - After ``close`` no worker is left.
    """

    capacity: int
    """Number of tasks that it holds at once."""
    barrier: bool
    """Whether all submitted tasks are collected together."""

    def submit(self, task: Task) -> None:
        """Accept a task for evaluation."""
        ...

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        """Return finished outcomes by trial number.

        Args:
            timeout_s: the maximum time to wait, in seconds; ``None`` waits without limit.

        Returns:
            At least one outcome, or none after ``timeout_s``.
        """
        ...

    def close(self) -> None:
        """End all workers immediately."""
        ...


Work = Callable[[Sequence[Task]], list[Outcome]]
