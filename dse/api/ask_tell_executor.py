"""Executor for caller-run evaluations: tasks wait until the caller reports their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition, Lock

from dse.core.trial import Outcome
from dse.protocols import Task

MeasurementKey = tuple[str, str]
"""Label of an evaluator whose metrics the caller reports, and the key of its input values."""

MOST_WAITING = 64
"""Number of tasks waiting for shared results after which the loop stops asking for more."""


class Left(Exception):  # noqa: N818 - not an error: the caller has stopped
    """Exception that ends a study's loop if the caller stops while trials are unreported."""


class AskTellExecutor:
    """Executor whose evaluations the calling program performs: it takes tasks and reports outcomes.

    It has no free capacity unless the caller requests tasks, so that no design is suggested ahead
    of time. For the attribute ``ended`` see :class:`dse.study.loop.Loop`.
    """

    barrier = False

    def __init__(
        self,
        answer: Callable[[Task], Outcome | None] = lambda _: None,
        parts: Callable[[Task], frozenset[MeasurementKey]] = lambda _: frozenset(),
    ) -> None:
        """Create an executor without tasks.

        Args:
            answer: returns the outcome of a task with nothing left to report, else ``None``.
            parts: returns the measurements that a task lacks: pairs of an evaluator and its input
                values. A task that lacks the same measurement as an unreported task waits for its
                report.
        """
        self._answer = answer
        self._parts = parts
        self.waiting: dict[int, Task] = {}
        self._releasing = Lock()
        self.changed = Condition()
        self.ended = ""
        self.capacity = 0
        self.tasks: dict[int, Task] = {}
        self._fresh: list[Task] = []
        self._outcomes: dict[int, Outcome] = {}
        self._wanted = 0
        self._left = False
        self._exhausted = False

    def submit(self, task: Task) -> None:
        outcome = self._answer(task)
        with self.changed:
            self._exhausted = False
            self._lay(task, outcome)
            self.changed.notify_all()

    def _lay(self, task: Task, outcome: Outcome | None) -> None:
        """File a new task as finished, as waiting for another task's report, or as ready to take.

        A task with an ``outcome`` is finished; one that lacks the same measurement as an unreported
        task waits; any other is ready.
        """
        wanted, is_shared = self._wanted, bool(self._parts(task) & self._under_way())
        self.tasks[task.number] = task
        if outcome is not None:
            self._outcomes[task.number] = outcome
        elif is_shared:
            self.waiting[task.number] = task
            # A caller with some tasks gets fewer than requested; one without gets another try.
            self._exhausted = len(self.waiting) % MOST_WAITING == 0
            wanted = 0 if self._exhausted else wanted - 1 if self._fresh else wanted
        else:
            self._fresh.append(task)
            wanted -= 1
        self._want(max(0, wanted))

    def _under_way(self) -> frozenset[MeasurementKey]:
        """Return the measurements that callers are to report; tasks that only wait add none."""
        apart = self.waiting.keys() | self._outcomes.keys()
        open_ = (self._parts(task) for number, task in self.tasks.items() if number not in apart)
        return frozenset[MeasurementKey]().union(*open_)

    def release(self, inform: Callable[[Task], Task]) -> None:
        """Requeue each waiting task, after ``inform`` has added newly reported metrics to it."""
        with self._releasing:
            for number, task in sorted(self.waiting.items()):
                informed = inform(task)
                outcome = self._answer(informed)
                with self.changed:
                    del self.waiting[number], self.tasks[number]
                    wanted, exhausted = self._wanted, self._exhausted
                    self._lay(informed, outcome)
                    self._want(wanted)
                    self._exhausted = exhausted and not self._fresh
                    self.changed.notify_all()

    def report_exhaustion(self) -> None:
        """Record that no more designs can be suggested until another outcome is reported."""
        with self.changed:
            self._exhausted = True
            self.changed.notify_all()

    @property
    def exhausted(self) -> bool:
        """Whether no more designs can be suggested and every outcome has been collected."""
        return self._exhausted and not self._outcomes

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        """Return the reported outcomes; none if the caller requests more tasks in the meantime.

        A request may arrive at any time, also after the loop checked for one; a request stays open
        until :meth:`report_exhaustion`.

        Raises:
            Left: the remaining tasks will not be reported.
        """
        with self.changed:
            self.changed.wait_for(
                lambda: (
                    self._outcomes
                    or self._left
                    or self.ended
                    or (self._wanted and not self._exhausted)
                ),
                timeout_s,
            )
            if self._left and not self._outcomes:
                raise Left
            brought, self._outcomes = self._outcomes, {}
            for number in brought:
                del self.tasks[number]
            if brought:
                self._exhausted = False
            self._want(self._wanted)
            return brought

    def close(self) -> None:
        """Do nothing: the executor outlives a single run of the study's loop."""

    def want(self, count: int) -> None:
        """Request tasks from the loop until ``count`` can be taken; 0 withdraws the request."""
        with self.changed:
            self._want(max(0, count - len(self._fresh)))
            self._exhausted = False
            self.changed.notify_all()

    def take(self, count: int) -> list[Task]:
        """Return up to ``count`` tasks to evaluate; none while the loop may still add some."""
        with self.changed:
            if self._wanted and not self.exhausted:
                return []
            taken, self._fresh = self._fresh[:count], self._fresh[count:]
            return taken

    def bring(self, outcomes: Mapping[int, Outcome]) -> None:
        """Pass outcomes reported by the caller, keyed by trial number, to the loop."""
        with self.changed:
            self._outcomes |= outcomes
            self.changed.notify_all()

    def leave(self) -> None:
        """Stop requesting tasks, so that the study's loop ends.

        If tasks are unreported, the loop ends with the exception :class:`Left`.
        """
        with self.changed:
            if self.tasks:
                self._left = True
            self.ended = "no more designs are requested"
            self.changed.notify_all()

    def _want(self, count: int) -> None:
        """Set the number of requested tasks; the capacity is this number plus the open tasks."""
        self._wanted = count
        self.capacity = len(self.tasks) + count
