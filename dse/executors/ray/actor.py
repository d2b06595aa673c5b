"""A worker's place on a node of a Ray cluster: what runs there."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from multiprocessing.connection import wait
from queue import SimpleQueue
from threading import Event, Lock

from dse.core.trial import Outcome
from dse.executors.failures import build_failure
from dse.executors.process_tree import wait_until_gone
from dse.executors.worker_process import NotBegunError, WorkerProcess
from dse.protocols import Task
from dse.system.credentials import forget_environment

CALLS = 5
"""So many of its methods run at once: it performs, stays, is heard, answered and ended."""

_LOOK_S = 0.5
"""How often to look whether the process is alive whose children hold its pipe open."""

_END_S = 10.0

_STARTS = 4
"""So many workers in a row that die before they have begun a task are no accident."""

Told = tuple[int, int | None, Mapping[str, float]]
"""A report: the trial's number, a step and metrics; without a step it is begun, at a time."""

BEGUN_AT = "begun_at"
"""The name under which a report without a step holds the time."""


class WorkerActor:
    """Holds the work and a process of its own that does it, one task at a time.

    An evaluator that crashes takes that process with it and never the seat: a seat that is lost
    was lost by the cluster, and its task can be tried elsewhere without the fear that the task is
    what kills.

    Args:
        work: the pickled work; Ray brings it to a node once.
        timeout_s: a task that takes longer has failed.
        environment: what the process is to find in its environment.
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
        self._reports: SimpleQueue[Told] = SimpleQueue()
        self._words: SimpleQueue[bool] = SimpleQueue()
        self._driven = self._begun()

    def node(self) -> str:
        """The machine that it is on."""
        return socket.gethostname()

    def stay(self) -> None:
        """Return when it is ended: an answer before is the sign that the cluster lost it."""
        self._over.wait()

    def perform(self, task: Task) -> Outcome:
        """Run the task and return its outcome."""
        with self._one:
            if not self._driven.alive:
                self._driven.end()
                self._driven = self._begun()
            return self._outcome(task)

    def report(self) -> Told:
        """Return the task's next report as soon as it arrives; the task waits for the answer."""
        return self._reports.get()

    def answer(self, *, stops: bool) -> None:
        """Answer the task that has reported: whether it has to stop."""
        self._words.put(stops)

    def end(self) -> None:
        """End the process, in the midst of a task too."""
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
        """Return what became of the task, begun again where its process died before it began."""
        reason = ""
        for _ in range(_STARTS):
            try:
                self._driven.take(task)
                return self._await_outcome()
            except NotBegunError as error:
                reason = str(error)
                self._driven = self._begun()
        return build_failure(
            "lost", f"workers do not start on {self.node()}: of the last one {reason}"
        )

    def _await_outcome(self) -> Outcome:
        driven = self._driven
        while not self._over.is_set():
            outcome = driven.outcome(self._timeout_s)
            if outcome is not None:
                return outcome
            wait(driven.signs, max(0.0, min(_LOOK_S, driven.left_s(self._timeout_s))))
        return build_failure("lost", "its worker was ended")
