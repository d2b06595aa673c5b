"""Main loop of a worker process: take a task, work, answer, until the driver is gone."""

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
from dse.executors.process_tree import end
from dse.protocols import Task, Work
from dse.system.broken_pipes import outlive_readers

READY = b""
"""The first answer: the work is loaded."""

WAITS = turns.WAITS.encode()
"""The worker waits for its turn on the machine: the time of its task stands still."""

GOES_ON = turns.GOES_ON.encode()
"""The wait is over."""

REPORT = b"report"
"""What the rest of the answer is, pickled: when it was sent, a step and metrics.

The driver says then whether the task need not go on.
"""

BEGUN = b"begun "
"""The rest of the answer is the wall clock at which the worker has begun its task."""

_CHECK_S = 1.0


def serve(pipe: Connection[bytes, Task]) -> None:
    """The life of a worker.

    Args:
        pipe: Brings the pickled work, which is loaded once, and then tasks. Takes words about
            waits and pickled outcomes after :data:`READY`.
    """
    _settle()
    with suppress(EOFError, OSError):  # the driver is gone
        _work(pipe)


def _work(pipe: Connection[bytes, Task]) -> None:
    """Load the work and do one task after the other.

    Raises:
        EOFError: the driver is gone.
        OSError: likewise.
    """
    act = _load_work(pipe.recv_bytes())
    if hasattr(act, "on_wait"):
        act.on_wait = lambda word: pipe.send_bytes(word.encode())
    if hasattr(act, "on_report"):
        act.on_report = partial(_send_report, pipe)
    pipe.send_bytes(READY)
    while True:
        task = pipe.recv()
        begun_at = time.time()
        pipe.send_bytes(BEGUN + repr(begun_at).encode())
        pipe.send_bytes(_answer(act, task, begun_at))


def guard(pipe: Connection[bytes, Task]) -> None:
    """The life of a process that stands between a driver and its worker, and dies as that does.

    Ray kills the children of what it kills, at once and without their own: a worker that is a
    child's child is left to see that itself, and to end all that it started.
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
        with suppress(OSError):  # SIGKILL is always as it should be
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _settle() -> None:
    """Leave Ctrl-C and the reader of the output to the driver; end when it does."""
    os.setsid()  # so that children can be ended with this process as one group, too
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    outlive_readers()
    Thread(target=_follow, args=(os.getppid(),), daemon=True).start()


def _follow(driver: int) -> None:
    """End this worker with all its children when the driver is gone.

    PR_SET_PDEATHSIG would not do: it kills the worker before this could end the children, and it
    fires when the *thread* ends that started the worker (prctl(2)).
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
    """Report to the driver, and return whether the task has to stop."""
    pipe.send_bytes(REPORT + pickle.dumps((time.monotonic(), step, dict(metrics))))
    return bool(pipe.recv())


def _answer(work: Work, task: Task, begun_at: float) -> bytes:
    try:
        outcome = alone(work, task)
        return pickle.dumps(replace(outcome, begun_at=begun_at, finished_at=time.time()))
    except BaseException as error:  # noqa: BLE001 - sys.exit() in an evaluator is its fault too
        return pickle.dumps(build_error_outcome(error))
