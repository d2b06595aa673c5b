"""Main loop of a worker process: receive a task, run it, send the outcome, repeat."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from threading import Thread

from dse.core.trial import Outcome
from dse.evaluation import machine_lock as turns
from dse.executors.failures import alone, build_error_outcome, build_failure
from dse.protocols import ReportsIntermediate, Task, WaitsForTurn, Work
from dse.system.broken_pipes import outlive_readers
from dse.system.process_tree import end

READY = b""
"""First message of a worker: the work is loaded."""

WAITS = turns.WAITS.encode()
"""Message: the worker waits for the machine lock, and its task's time stops counting."""

GOES_ON = turns.GOES_ON.encode()
"""Message: the wait is over."""

REPORT = b"report"
"""Prefix of a report message; the pickled rest is the time of sending, a step and metrics.

The driver replies whether the task must stop.
"""

BEGUN = b"begun "
"""Prefix of a message with the wall-clock time at which the worker began its task."""

_CHECK_S = 1.0


def serve(pipe: Connection[bytes, Task]) -> None:
    """Run a worker process until its parent process is gone.

    Args:
        pipe: Delivers the pickled function that evaluates tasks, and then tasks. Receives
            :data:`READY`, then messages about waits, and pickled outcomes.
    """
    _settle()
    with suppress(EOFError, OSError):  # the driver is gone
        _work(pipe)


def _work(pipe: Connection[bytes, Task]) -> None:
    """Load the pickled evaluation function, then run the tasks that arrive, one by one.

    Raises:
        EOFError: the driver is gone.
        OSError: the driver is gone.
    """
    act = _load_work(pipe.recv_bytes())
    hooks: object = act
    if isinstance(hooks, WaitsForTurn):
        hooks.on_wait = lambda word: pipe.send_bytes(word.encode())
    if isinstance(hooks, ReportsIntermediate):
        hooks.on_report = partial(_send_report, pipe)
    pipe.send_bytes(READY)
    while True:
        task = pipe.recv()
        begun_at = time.time()
        pipe.send_bytes(BEGUN + repr(begun_at).encode())
        pipe.send_bytes(_answer(act, task, begun_at))


def guard(pipe: Connection[bytes, Task]) -> None:
    """Run a worker as a child process, and exit with the worker's exit status.

    When Ray kills a process, it also kills its direct children, but not their descendants. A worker
    that is a grandchild survives, notices the loss, and ends the processes that it started.
    """
    _settle()
    worker = multiprocessing.get_context("spawn").Process(target=serve, args=(pipe,))
    worker.start()
    pipe.close()
    worker.join()
    code = worker.exitcode or 0
    if code < 0:  # a signal: never on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one dump of the worker is enough
        with suppress(OSError):  # the handler of SIGKILL cannot be set
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _settle() -> None:
    """Ignore SIGINT and closed output pipes; end this process when its driver process ends."""
    os.setsid()  # so that this process and its children can be killed as one group
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    outlive_readers()
    Thread(target=_follow, args=(os.getppid(),), daemon=True).start()


def _follow(driver: int) -> None:
    """Wait until the driver process is gone, then end this worker and its child processes.

    PR_SET_PDEATHSIG is not suitable: it kills the worker before it can end its children, and it
    fires when the *thread* that started the worker ends (prctl(2)).
    """
    parent = multiprocessing.parent_process()
    while os.getppid() == driver and parent is not None and parent.is_alive():
        parent.join(_CHECK_S)
    end(os.getpid())


def _load_work(work: bytes) -> Work:
    try:
        loaded: Work = pickle.loads(work)  # noqa: S301 - the driver's own bytes
    except Exception as error:  # noqa: BLE001 - importing a plug-in may raise anything
        reason = f"the work cannot be loaded in a worker: {type(error).__name__}: {error}"

        def refuse(tasks: Sequence[Task]) -> list[Outcome]:
            return [build_failure("raised", reason) for _ in tasks]

        return refuse
    return loaded


def _send_report(
    pipe: Connection[bytes, Task], _number: int, step: int, metrics: Mapping[str, float]
) -> bool:
    """Send a report of intermediate metrics to the driver; return whether the task must stop."""
    pipe.send_bytes(REPORT + pickle.dumps((time.monotonic(), step, dict(metrics))))
    return bool(pipe.recv())


def _answer(work: Work, task: Task, begun_at: float) -> bytes:
    try:
        outcome = alone(work, task)
        return pickle.dumps(replace(outcome, begun_at=begun_at, finished_at=time.time()))
    except BaseException as error:  # noqa: BLE001 - sys.exit() in an evaluator is a failure, too
        return pickle.dumps(build_error_outcome(error))
