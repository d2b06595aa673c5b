"""Executor with worker processes: a crash or hang of a worker fails only its task."""

from __future__ import annotations

import atexit
import pickle
import time
from collections import deque
from multiprocessing.connection import wait

from dse.core.trial import Event, Outcome
from dse.errors import PluginError
from dse.evaluation.reporting import Watcher, unheard
from dse.executors.worker_process import Beginning, NotBegunError, WorkerProcess, ignore_begin
from dse.protocols import Task, Work

_LOOK_S = 0.5
"""Interval of liveness checks, in seconds: children of a dead worker may keep its pipe open."""

_STARTS = 4
"""Number of consecutive workers that die before they are ready after which the run ends."""


class Processes:
    """Executor that evaluates each task in one of several spawned worker processes.

    If a worker dies before its task has begun, the task is requeued and an event is recorded. If a
    worker is killed from outside, its task fails with the kind ``lost``, after which a study
    retries the task.

    Args:
        workers: Number of concurrent tasks.
        timeout_s: Time limit of a task in seconds; a task that exceeds it fails, and its worker is
            killed.
    """

    barrier = False

    def __init__(self, work: Work, *, workers: int = 2, timeout_s: float | None = None) -> None:
        if workers < 1:
            raise PluginError(f"the executor 'processes' cannot have {workers} workers")
        if timeout_s is not None and timeout_s <= 0:
            raise PluginError(f"the executor 'processes' cannot end tasks after {timeout_s:g} s")
        self.capacity = workers
        self._work = _pickle_work(work)
        self._timeout_s = timeout_s
        self._waiting: deque[Task] = deque()
        self._workers: list[WorkerProcess] = []
        self._closed = False
        self.on_report: Watcher = unheard
        self.on_begin: Beginning = ignore_begin
        self._events: list[Event] = []
        self._unstarted = 0
        atexit.register(self.close)  # otherwise the interpreter waits for the workers at exit

    def submit(self, task: Task) -> None:
        if self._closed:
            raise RuntimeError("the executor is closed")
        self._waiting.append(task)
        self._assign()

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            outcomes = self._collect_outcomes()
            busy = [worker for worker in self._workers if worker.task is not None]
            if outcomes or not busy:
                return outcomes
            left_s = min(_LOOK_S, *(worker.left_s(self._timeout_s) for worker in busy))
            if until is not None:
                left_s = min(left_s, until - time.monotonic())
                if left_s <= 0 and time.monotonic() >= until:
                    return {}
            wait([sign for worker in busy for sign in worker.signs], max(left_s, 0.0))

    def close(self) -> None:
        self._closed = True
        atexit.unregister(self.close)
        self._waiting.clear()
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def events(self) -> list[Event]:
        """Return texts for the user since the last call, such as failed starts of workers."""
        found, self._events = self._events, []
        return found

    def _collect_outcomes(self) -> dict[int, Outcome]:
        outcomes: dict[int, Outcome] = {}
        for worker in self._workers:
            if (task := worker.task) is None:
                continue
            worker.on_report, worker.on_begin = self.on_report, self.on_begin
            try:
                outcome = worker.outcome(self._timeout_s)
            except NotBegunError as error:
                worker.task = None
                self._waiting.appendleft(task)
                self._count_failed_start(worker, str(error))
                continue
            if worker.ready:
                self._unstarted = 0
            if outcome is not None:
                outcomes[task.number] = outcome
                worker.task = None
        self._assign()
        return outcomes

    def _count_failed_start(self, worker: WorkerProcess, reason: str) -> None:
        """Count a worker that died before its task had begun, and record an event for the user.

        Raises:
            PluginError: too many consecutive workers died before they were ready.
        """
        text = f"a trial waits for another worker: {reason} before it had begun"
        self._events.append(Event(kind="executor", text=text))
        if worker.ready:
            return
        self._unstarted = max(self._unstarted, worker.generation + 1)
        if self._unstarted >= _STARTS:
            raise PluginError(
                f"workers do not start: for the last task, {reason}",
                hint="check that the imports of the study's evaluators work on this machine; "
                "no result is lost: 'dse resume' continues the study",
            )

    def _assign(self) -> None:
        """Give waiting tasks to free workers; start more workers up to the allowed number."""
        while self._waiting and (free := self._free()) is not None:
            free.take(self._waiting.popleft())

    def _free(self) -> WorkerProcess | None:
        for worker in list(self._workers):
            if worker.task is None:
                if worker.alive:
                    return worker
                worker.end()
                self._workers.remove(worker)
        if len(self._workers) == self.capacity:
            return None
        worker = WorkerProcess(self._work, main=b"__main__" in self._work)
        worker.generation = self._unstarted
        self._workers.append(worker)
        return worker


def _pickle_work(work: Work) -> bytes:
    try:
        return pickle.dumps(work)
    except Exception as error:
        raise PluginError(
            f"the work cannot be sent to other processes: {error}",
            hint="define functions at the top of a module, or use the executor 'serial'",
        ) from error
