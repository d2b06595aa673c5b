"""Ray actor of a worker: runs a worker process on a node of a cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from multiprocessing.connection import wait
from queue import SimpleQueue
from threading import Event, Lock

from dse.core.trial import Outcome
from dse.executors.failures import build_failure
from dse.executors.worker_process import NotBegunError, WorkerProcess
from dse.protocols import Task
from dse.system.credentials import forget_environment
from dse.system.process_tree import wait_until_gone

CALLS = 5
"""Concurrent method calls of an actor: ``perform``, ``stay``, ``report``, ``answer``, ``end``."""

_LOOK_S = 0.5
"""Interval of liveness checks, in seconds: children of a dead process may keep its pipe open."""

_END_S = 10.0

_STARTS = 4
"""Number of consecutive workers that die before a task has begun after which the task fails."""

WorkerReport = tuple[int, int | None, Mapping[str, float]]
"""Report: a trial's number, a step and metrics; a step of ``None`` reports the start time."""

BEGUN_AT = "begun_at"
"""Key of the start time in the metrics of a report without a step."""


class WorkerActor:
    """Ray actor with a child process that runs the evaluations, one task at a time.

    A crashing evaluator ends only the child process, never the actor. If an actor is lost, the
    cluster therefore caused it, and the actor's task can be retried elsewhere.

    Args:
        work: the pickled function that evaluates tasks; Ray transfers it to a node once.
        timeout_s: the time limit of a task in seconds.
        environment: environment variables of the child process.
    """

    def __init__(
        self, work: bytes, timeout_s: float | None, environment: Mapping[str, str]
    ) -> None:
        os.environ.update(environment)
        forget_environment()
        self._work = work
        self._timeout_s = timeout_s
        self._over = Event()
        self._one = Lock()
        self._reports: SimpleQueue[WorkerReport] = SimpleQueue()
        self._words: SimpleQueue[bool] = SimpleQueue()
        self._driven = self._begun()

    def node(self) -> str:
        """Return the host name of the node on which the actor runs."""
        return socket.gethostname()

    def stay(self) -> None:
        """Block until :meth:`end`; if the call ends earlier, the cluster has lost the actor."""
        self._over.wait()

    def perform(self, task: Task) -> Outcome:
        """Run the task in the child process and return its outcome."""
        with self._one:
            if not self._driven.alive:
                self._driven.end()
                self._driven = self._begun()
            return self._outcome(task)

    def report(self) -> WorkerReport:
        """Wait for the next report of intermediate metrics from the running task; return it.

        The task waits until :meth:`answer` is called.
        """
        return self._reports.get()

    def answer(self, *, stops: bool) -> None:
        """Reply to the running task's last report: whether the task must stop."""
        self._words.put(stops)

    def end(self) -> None:
        """Kill the child process, even during a task."""
        self._over.set()
        begun = self._driven.processes
        self._driven.end()
        wait_until_gone(begun, _END_S)

    def _begun(self) -> WorkerProcess:
        driven = WorkerProcess(self._work, guarded=True)
        driven.on_report = self._heard
        driven.on_begin = self._note_begin
        return driven

    def _note_begin(self, number: int, at: float) -> None:
        self._reports.put((number, None, {BEGUN_AT: at}))

    def _heard(self, number: int, step: int, metrics: Mapping[str, float]) -> bool:
        self._reports.put((number, step, metrics))
        return self._words.get()

    def _outcome(self, task: Task) -> Outcome:
        """Run the task and return its outcome; retry if the child process dies before it begins."""
        reason = ""
        for _ in range(_STARTS):
            try:
                self._driven.take(task)
                return self._await_outcome()
            except NotBegunError as error:
                reason = str(error)
                self._driven = self._begun()
        return build_failure(
            "lost", f"workers do not start on {self.node()}: for the last one, {reason}"
        )

    def _await_outcome(self) -> Outcome:
        driven = self._driven
        while not self._over.is_set():
            outcome = driven.outcome(self._timeout_s)
            if outcome is not None:
                return outcome
            wait(driven.signs, max(0.0, min(_LOOK_S, driven.left_s(self._timeout_s))))
        return build_failure("lost", "its worker was ended")
