"""Handle, in the driver process, of one worker process."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection

from dse.core.metric import FailureKind
from dse.core.trial import Outcome
from dse.evaluation.process_exit import describe_death, kind_of_death
from dse.evaluation.reporting import Watcher, unheard
from dse.executors.failures import build_error_outcome, build_failure
from dse.executors.stopwatch import Stopwatch
from dse.executors.worker_environment import birth
from dse.executors.worker_main import BEGUN, GOES_ON, READY, REPORT, WAITS, guard, serve
from dse.protocols import Task
from dse.system.process_guard import count_memory_kills
from dse.system.process_tree import descendants, end

START_TIMEOUT_S = 300.0
"""Time limit for a worker's imports, in seconds; the limit of a task counts after that."""

Beginning = Callable[[int, float], None]
"""Callback with a trial's number and the wall-clock time at which it was begun."""

_EXIT_S = 5.0


def ignore_begin(_number: int, _at: float) -> None:
    """Ignore the notice that a worker has begun a task."""


class NotBegunError(Exception):
    """Raised for a worker that died, or did not start in time, before its task had begun."""


class WorkerProcess:
    """Handle of a spawned worker process, isolated from other workers' crashes by its own pipe.

    The worker is spawned and not forked, because a fork of a process with threads can deadlock.

    Args:
        work: the pickled function that evaluates tasks.
        main: whether the function needs definitions of the main script.
        guarded: whether to start the worker through :func:`~dse.executors.worker_main.guard`,
            because this process may be killed together with its children, but not their
            descendants.

    Attributes:
        ready: whether the worker has finished its imports.
        generation: the number of consecutive workers before it that never became ready.
    """

    def __init__(self, work: bytes, *, main: bool = False, guarded: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self.task: Task | None = None
        self.on_report: Watcher = unheard
        self.on_begin: Beginning = ignore_begin
        self.ready = False
        self.generation = 0
        self._begun_at: float | None = None
        self._kills = 0
        self._watch = Stopwatch()
        self._pipe: Connection[Task | bool, bytes]
        self._pipe, theirs = context.Pipe()
        life = guard if guarded else serve
        self._process = context.Process(target=life, args=(theirs,), name="dse-worker")
        try:
            with birth(main=main):
                self._process.start()
            theirs.close()
            with suppress(OSError):  # it has just died: the next outcome() call reports it
                self._pipe.send_bytes(work)
        except BaseException:  # not in any list yet; the interpreter would wait for it at exit
            self.end()
            raise

    @property
    def alive(self) -> bool:
        """Whether the worker process is alive and can take a task."""
        return self._process.is_alive() and not self._pipe.closed

    @property
    def processes(self) -> list[int]:
        """Ids of the worker process and of all its descendants."""
        pid = self._process.pid
        return [] if pid is None else [pid, *descendants(pid)]

    @property
    def signs(self) -> list[Connection[Task | bool, bytes] | int]:
        """Objects to wait for: the pipe (a message) and the sentinel (the end of the process)."""
        return [self._pipe, self._process.sentinel]

    def left_s(self, timeout_s: float | None) -> float:
        """Return the seconds until the running task exceeds the time limit.

        It is infinite while the task waits for the machine lock.
        """
        limit_s = START_TIMEOUT_S if not self.ready else timeout_s
        if limit_s is None or self._watch.stopped:
            return math.inf
        return limit_s - self._watch.spent_s

    def take(self, task: Task) -> None:
        """Send a task to the worker, which must be free."""
        self.task = task
        self._begun_at = None
        self._kills = count_memory_kills()
        if self.ready:
            self._watch = Stopwatch()
        with suppress(OSError):  # it has just died: outcome() reports it
            self._pipe.send(task)

    def outcome(self, timeout_s: float | None) -> Outcome | None:
        """Return the outcome of the worker's task; ``None`` while the task runs.

        Raises:
            NotBegunError: the worker died before the task had begun.
        """
        over = not self._process.is_alive()  # checked first: messages sent before death count
        try:
            while self._pipe.poll():
                answer = self._pipe.recv_bytes()
                if answer.startswith(REPORT):
                    self._forward_report(answer.removeprefix(REPORT))
                elif answer.startswith(BEGUN):
                    self._begin(float(answer.removeprefix(BEGUN)))
                elif answer not in (READY, WAITS, GOES_ON):
                    return _load_outcome(answer)
                else:
                    self._hear(answer)
        except (EOFError, OSError):
            over = True
        if over:
            return self._handle_crash()
        return None if self.left_s(timeout_s) > 0 else self._overdue(timeout_s)

    def end(self) -> None:
        """Kill the worker and all processes that it started."""
        if self._process.pid is not None and not self._pipe.closed:
            end(self._process.pid)
            self._process.join()
            self._pipe.close()

    def _hear(self, word: bytes) -> None:
        if word == WAITS:
            self._watch.stop()
        elif word == GOES_ON:
            self._watch.go_on()
        else:
            self.ready = True
            self._watch = Stopwatch()

    def _begin(self, at: float) -> None:
        assert self.task is not None
        self._begun_at = at
        self.on_begin(self.task.number, at)

    def _forward_report(self, report: bytes) -> None:
        """Forward a report of intermediate metrics, and reply whether the task must stop."""
        assert self.task is not None
        sent_s, step, metrics = pickle.loads(report)  # noqa: S301 - from this driver's worker
        stops = self.on_report(self.task.number, step, metrics)
        self._watch.pass_over(time.monotonic() - sent_s)  # the monotonic clock is machine-wide
        self._pipe.send(stops)

    def _handle_crash(self) -> Outcome:
        spent_s = self._watch.spent_s
        self._process.join(_EXIT_S)
        code = self._process.exitcode
        self.end()
        short = count_memory_kills() > self._kills
        reason = f"its worker {_describe_exit(code, short=short)}"
        if self._begun_at is None:
            raise NotBegunError(reason)
        number = -code if code is not None and code < 0 else 0
        return self._build_timed_failure(kind_of_death(number, short=short), reason, spent_s)

    def _overdue(self, timeout_s: float | None) -> Outcome:
        spent_s = self._watch.spent_s
        self.end()
        if not self.ready:
            raise NotBegunError(f"its worker did not start in {START_TIMEOUT_S:g} s")
        return self._build_timed_failure("timeout", f"no outcome after {timeout_s:g} s", spent_s)

    def _build_timed_failure(self, kind: FailureKind, reason: str, spent_s: float) -> Outcome:
        outcome = build_failure(kind, reason, spent_s)
        return replace(outcome, begun_at=self._begun_at, finished_at=time.time())


def _describe_exit(code: int | None, *, short: bool) -> str:
    if code is None:
        return "closed its pipe"
    if code < 0:
        return f"was ended by {describe_death(-code, short=short)}"
    return f"exited with status {code}"


def _load_outcome(answer: bytes) -> Outcome:
    try:
        outcome: Outcome = pickle.loads(answer)  # noqa: S301 - from this driver's worker
    except Exception as error:  # noqa: BLE001 - a class that only the worker can import
        return build_error_outcome(error)
    return outcome
