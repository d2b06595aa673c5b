"""Executor that runs tasks in this process when their outcomes are collected."""

from __future__ import annotations

from copy import copy
from typing import Any

from dse.core.trial import Outcome
from dse.errors import PluginError
from dse.evaluation.reporting import Watcher, unheard
from dse.executors.failures import alone
from dse.protocols import ReportsIntermediate, Task, Work


class Serial:
    """Executor that runs all submitted tasks in one call of ``work``, as vectorized models need.

    ``work`` is the function that evaluates tasks. A crash or hang of an evaluator affects this
    process; if that may happen, use the executor ``processes``.

    Args:
        batch: Maximum number of tasks per call.
    """

    barrier = True

    def __init__(self, work: Work, *, batch: int = 1) -> None:
        if batch < 1:
            raise PluginError(f"the executor 'serial' cannot take {batch} tasks at once")
        self.capacity = batch
        self.on_report: Watcher = unheard
        self._work = work
        self._passes_reports = isinstance(work, ReportsIntermediate)
        self._tasks: list[Task] = []

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:  # noqa: ARG002 - it is never idle
        outcomes = self._run() if self._tasks else {}
        self._tasks.clear()
        return outcomes

    def close(self) -> None:
        """Discard the submitted tasks whose outcomes were not collected."""
        self._tasks.clear()

    def _run(self) -> dict[int, Outcome]:
        work = self._own_work()
        try:
            outcomes = work(self._tasks)
            return {t.number: o for t, o in zip(self._tasks, outcomes, strict=True)}
        except Exception:  # noqa: BLE001 - rerun each task alone to find the failing ones
            return {task.number: alone(work, task) for task in self._tasks}

    def _own_work(self) -> Work:
        """Return a copy of the evaluation function whose reports go to this executor.

        Executors in threads of one process share the function. If they also shared its listener for
        intermediate reports, a trial's reports would go to the executor that started last, or be
        lost.
        """
        if not self._passes_reports:
            return self._work
        hooks: Any = copy(self._work)
        hooks.on_report = self.on_report
        own: Work = hooks
        return own
