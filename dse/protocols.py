"""The four doors through which plug-ins enter, with the laws that each must keep.

A law has a contract test of the same wording in :mod:`dse.testing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.metric import Kind, Metric, Metrics
from dse.core.trial import Event, Outcome, State, Trial

EVERYTHING = "*"
"""In an evaluator's ``reads``: every parameter of the space."""

COHERENT = "coherent"
"""In an evaluator's ``units``: the reading in coherent SI, whatever its own unit."""


class Evaluator(Protocol):
    """Tells what designs cost and yield; made with its own keyword options.

    Laws:
        - It gives the same row whatever the batch around it.
        - It provides every metric that it declares, in the declared unit, for every row without
          a fault.
        - It reads nothing but what it declares.
        - A row's fault is told in ``Metrics.faults``; an exception is the fault of every row.
        - It survives pickling, and is cheap to make: heavy libraries are imported by ``evaluate``.
    """

    reads: frozenset[str]
    """Parameters, and metrics of earlier evaluators, that it cannot do without."""
    optional: frozenset[str]
    """What it also reads where the space has it, and else has an own value for."""
    units: Mapping[str, str]
    """The unit in which it wants a reading; a name that is missing is taken as it comes."""
    provides: Mapping[str, Metric]
    kind: Kind
    version: str
    """Changes whenever the numbers change: part of a study's identity."""

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n designs: columns in, columns out."""
        ...


class Optimizer(Protocol):
    """Proposes designs; made with ``(problem, **options)``.

    It may have an attribute ``batch``: how many designs it likes to be asked for at once when
    they cost nothing; without it, one. One with a true attribute ``learns_outside`` is also told
    trials whose designs the space no longer has (``State.OUTSIDE``). One with an attribute
    ``expected_gain``, ``None`` in the class, sets it with each ``ask``: the share of the present
    hypervolume that its suggestion is expected to add, ``None`` while it cannot tell. A study may
    stop by it. One with an attribute ``on_progress`` is given a function there, which it tells
    how many designs of how many a long step has looked at.

    Laws:
        - It draws only from ``problem.rng(told)``.
        - What it asks is legal and new: neither told nor pending.
        - Told the same in the same order, it asks the same, however the telling was cut.
        - It asks at most ``count`` designs; none means that nothing is left.
    """

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        """Up to ``count`` designs; ``pending`` were asked before and are not finished."""
        ...

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from trials, each told once, in the order in which they were finished."""
        ...

    def events(self) -> list[Event]:
        """What happened since the last call that a user should know: choices, fallbacks, proofs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A trial to be evaluated, with the metrics that need not be measured again.

    ``only`` holds the labels of the evaluators that are to run; ``None``: all.
    """

    number: int
    design: Design
    given: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    only: frozenset[str] | None = None


class Executor(Protocol):
    """Runs tasks; made with ``(work, **options)``, where ``work`` turns tasks into outcomes.

    Laws:
        - Every task that was submitted is collected exactly once.
        - A task whose worker crashes or hangs is collected as failed, with the reason.
        - ``work`` is called where the executor says; it survives pickling.
        - After ``close`` no worker is left.
    """

    capacity: int
    """How many tasks it takes at once."""
    barrier: bool
    """True: all that was submitted comes back together."""

    def submit(self, task: Task) -> None:
        """Take a task."""
        ...

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        """Outcomes by trial number: at least one, or none after ``timeout_s``."""
        ...

    def close(self) -> None:
        """End all workers, at once."""
        ...


Work = Callable[[Sequence[Task]], list[Outcome]]


class Storage(Protocol):
    """Remembers studies; made with ``(url)``.

    Laws:
        - What a method did is on disk when it returns; what it did not finish left no trace.
        - Numbers run from 0 without a gap, whoever adds.
        - A finished trial never changes.
        - ``trials`` gives them by number, as they were written; ``finished_order`` as they ended.
    """

    def create(self, study: str, spec: Mapping[str, Any]) -> None:
        """Begin a study. Raises StudyError where there is one of that name."""
        ...

    def spec(self, study: str) -> dict[str, Any] | None:
        """What the study was created with; ``None`` where there is no such study."""
        ...

    def studies(self) -> list[str]:
        """The names of all studies, in the order of their creation."""
        ...

    def delete(self, study: str) -> None:
        """Forget a study and all its trials. Raises StudyError where there is none."""
        ...

    def add(self, study: str, designs: Sequence[Design], told: int) -> list[Trial]:
        """Number the designs and keep them as pending trials, all or none."""
        ...

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        """Put unfinished trials in another unfinished state."""
        ...

    def finish(self, study: str, outcomes: Mapping[int, Outcome]) -> None:
        """Keep the outcomes of unfinished trials, in this order. Raises StudyError if finished."""
        ...

    def trials(self, study: str) -> list[Trial]:
        """All trials by number."""
        ...

    def finished_order(self, study: str) -> list[int]:
        """The numbers of the finished trials in the order in which they were finished."""
        ...

    def record(self, study: str, events: Sequence[Event]) -> None:
        """Keep events, after all earlier ones."""
        ...

    def events(self, study: str) -> list[Event]:
        """All events, oldest first."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...
