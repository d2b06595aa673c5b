"""An executor whose work is done outside: tasks lie on a desk until somebody brings outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition, Lock

from dse.core.trial import Outcome
from dse.protocols import Task

Part = tuple[str, str]
"""An evaluator whose metrics the caller reports, and the values that it reads."""

MOST_WAITING = 64
"""After so many designs that share what is reported of others no more are asked for one."""


class Left(Exception):  # noqa: N818 - it is no mistake: who asked has gone
    """End of asking: the caller takes no more tasks, and has not reported all of them."""


class Desk:
    """Exchange between a study's loop, in a thread, and the caller who asks and reports.

    The loop finds it full unless somebody asks, so that no design is asked ahead of time. It may
    have an attribute ``ended``, see :class:`dse.study.loop.Loop`.
    """

    barrier = False

    def __init__(
        self,
        answer: Callable[[Task], Outcome | None] = lambda _: None,
        parts: Callable[[Task], frozenset[Part]] = lambda _: frozenset(),
    ) -> None:
        """Make an empty desk.

        Args:
            answer: gives the outcome of a task of which nothing is left to be reported.
            parts: gives what is left to be reported of a task. One that shares a part with a task
                that is on the desk already waits until that one is reported.
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
        """Put a task where it belongs: with its outcome, among those that wait, or to be taken."""
        wanted, is_shared = self._wanted, bool(self._parts(task) & self._under_way())
        self.tasks[task.number] = task
        if outcome is not None:
            self._outcomes[task.number] = outcome
        elif is_shared:
            self.waiting[task.number] = task
            # Who asks for several gets fewer; for who has none yet another one is looked for.
            self._exhausted = len(self.waiting) % MOST_WAITING == 0
            wanted = 0 if self._exhausted else wanted - 1 if self._fresh else wanted
        else:
            self._fresh.append(task)
            wanted -= 1
        self._want(max(0, wanted))

    def _under_way(self) -> frozenset[Part]:
        """Return the parts that others report, or have been given to report."""
        apart = self.waiting.keys() | self._outcomes.keys()
        open_ = (self._parts(task) for number, task in self.tasks.items() if number not in apart)
        return frozenset[Part]().union(*open_)

    def release(self, inform: Callable[[Task], Task]) -> None:
        """Look again at the tasks that wait, each with what ``inform`` adds to it."""
        with self._releasing:
            for number, task in sorted(self.waiting.items()):
                told = inform(task)
                outcome = self._answer(told)
                with self.changed:
                    del self.waiting[number], self.tasks[number]
                    wanted, exhausted = self._wanted, self._exhausted
                    self._lay(told, outcome)
                    self._want(wanted)
                    self._exhausted = exhausted and not self._fresh
                    self.changed.notify_all()

    def report_exhaustion(self) -> None:
        """Note that the loop cannot ask more until an outcome comes, from here or elsewhere."""
        with self.changed:
            self._exhausted = True
            self.changed.notify_all()

    @property
    def exhausted(self) -> bool:
        """True if the loop can ask no more now, and knows every outcome that was brought."""
        return self._exhausted and not self._outcomes

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        """Return what was brought; nothing where more is wanted than the loop knew of.

        A wish may come at any time, also after the loop looked for one: only
        :meth:`report_exhaustion` says that there is nothing for it.

        Raises:
            Left: nobody will bring the rest.
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
        """Nothing: a study has several loops, and one desk."""

    def want(self, count: int) -> None:
        """Ask the loop for tasks until so many lie here; with 0, for no more."""
        with self.changed:
            self._want(max(0, count - len(self._fresh)))
            self._exhausted = False
            self.changed.notify_all()

    def take(self, count: int) -> list[Task]:
        """Take so many new tasks, or what there is if the loop is exhausted; else none."""
        with self.changed:
            if self._wanted and not self.exhausted:
                return []
            taken, self._fresh = self._fresh[:count], self._fresh[count:]
            return taken

    def bring(self, outcomes: Mapping[int, Outcome]) -> None:
        """Hand in outcomes of tasks."""
        with self.changed:
            self._outcomes |= outcomes
            self.changed.notify_all()

    def leave(self) -> None:
        """Want no more: the loop ends at once, in order if nothing is left on the desk."""
        with self.changed:
            if self.tasks:
                self._left = True
            self.ended = "nobody asks any more"
            self.changed.notify_all()

    def _want(self, count: int) -> None:
        """Remember that so many are waited for; what lies here, too, is work that is under way."""
        self._wanted = count
        self.capacity = len(self.tasks) + count
