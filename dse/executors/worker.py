"""What runs in a worker process: take a task, work, answer, until the driver is gone."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from threading import Thread

from dse.core.trial import Outcome
from dse.executors.failures import alone, failed, raised
from dse.executors.process_tree import end
from dse.protocols import Task, Work

READY = b""
"""The first answer: the work is loaded."""

_CHECK_S = 1.0


def serve(work: bytes, pipe: Connection[bytes, Task]) -> None:
    """The life of a worker.

    Args:
        work: The pickled work; it is loaded once.
        pipe: Brings tasks and takes pickled outcomes, after :data:`READY`.
    """
    os.setsid()  # Ctrl-C is the driver's; and children can be ended with the worker as one group
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    act = _loaded(work)
    pipe.send_bytes(READY)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):  # the driver is gone
            return
        pipe.send_bytes(_answer(act, task))


def _follow(driver: int) -> None:
    """End this worker with all its children when the driver is gone.

    PR_SET_PDEATHSIG would not do: it kills the worker before this could end the children, and it
    fires when the *thread* ends that started the worker (prctl(2)).
    """
    parent = multiprocessing.parent_process()
    while os.getppid() == driver and parent is not None and parent.is_alive():
        parent.join(_CHECK_S)
    end(os.getpid())


def _loaded(work: bytes) -> Work:
    try:
        loaded: Work = pickle.loads(work)  # noqa: S301 - the driver's own bytes
    except Exception as error:  # noqa: BLE001 - importing a plug-in may raise anything
        reason = f"the work cannot be loaded in a worker: {type(error).__name__}: {error}"

        def refuse(tasks: Sequence[Task]) -> list[Outcome]:
            return [failed("raised", reason) for _ in tasks]

        return refuse
    return loaded


def _answer(work: Work, task: Task) -> bytes:
    try:
        return pickle.dumps(alone(work, task))
    except BaseException as error:  # noqa: BLE001 - sys.exit() in an evaluator is its fault too
        return pickle.dumps(raised(error))
