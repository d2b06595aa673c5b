"""Work done in this process, when its outcomes are asked for."""

from __future__ import annotations

from copy import copy

from dse.core.trial import Outcome
from dse.errors import PluginError
from dse.evaluation.reporting import Watcher, unheard
from dse.executors.failures import alone
from dse.protocols import Task, Work


class Serial:
    """Runs all that was submitted in one call of ``work``: what models by columns want.

    What crashes or hangs takes this process with it: where that may happen, take ``processes``.

    Args:
        batch: Tasks that are taken at once.
    """

    barrier = True

    def __init__(self, work: Work, *, batch: int = 1) -> None:
        if batch < 1:
            raise PluginError(f"the executor 'serial' cannot take {batch} tasks at once")
        self.capacity = batch
        self.on_report: Watcher = unheard
        self._work = work
        self._tasks: list[Task] = []

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:  # noqa: ARG002 - it is never idle
        outcomes = self._run() if self._tasks else {}
        self._tasks.clear()
        return outcomes

    def close(self) -> None:
        """Forget what was not collected."""
        self._tasks.clear()

    def _run(self) -> dict[int, Outcome]:
        work = self._own_work()
        try:
            outcomes = work(self._tasks)
            return {t.number: o for t, o in zip(self._tasks, outcomes, strict=True)}
        except Exception:  # noqa: BLE001 - one by one it shows whose fault it was
            return {task.number: alone(work, task) for task in self._tasks}

    def _own_work(self) -> Work:
        """Return the work, such that its reports come to this executor.

        Drivers in threads of one process share the work. Where they shared its listener too, a
        trial's reports would go to whichever driver began one last, or be lost.
        """
        if not hasattr(self._work, "on_report"):
            return self._work
        work = copy(self._work)
        work.on_report = self.on_report
        return work
