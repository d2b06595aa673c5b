"""Environment in which worker processes are spawned: threads, main module and signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import resource_tracker, spawn
from types import ModuleType

from dse.system.credentials import private_environment

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Environment variables with which numeric libraries read their number of threads."""

_SILENT = (
    "import pickle, sys; sys.excepthook = lambda kind, *more: None "
    "if kind in (EOFError, pickle.UnpicklingError) else sys.__excepthook__(kind, *more); "
)
"""Code run first in a spawned process: no traceback if a killed driver leaves its input cut off."""


@contextmanager
def birth(*, main: bool) -> Iterator[None]:
    """Prepare the environment that worker processes started in the block inherit.

    Args:
        main: whether the process needs definitions of the main script.
    """
    with (
        _one_thread(),
        private_environment(),
        _main_if(main),
        _block_interrupts(),
        _silent_orphan(),
    ):
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    """Set one thread per worker for all numeric libraries, unless the user set the number.

    Libraries read the variable when they are imported, and a spawned process imports them before
    any code here runs. The variable must therefore be in the inherited environment.
    """
    unset = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            os.environ.pop(name, None)


@contextmanager
def _main_if(needed: bool) -> Iterator[None]:  # noqa: FBT001 - reads as a sentence
    """Hide the main module inside the block unless a worker needs to import it.

    A spawned process imports the main script. That is slow for a command, impossible for standard
    input, and recurses endlessly for a script without ``if __name__ == "__main__"``.
    """
    main = sys.modules["__main__"]
    if not needed:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block SIGINT (Ctrl-C) inside the block, so that a worker spawned there inherits the block.

    The worker unblocks it once it ignores SIGINT.
    """
    resource_tracker.ensure_running()  # starting it later would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _silent_orphan() -> Iterator[None]:
    """Make a worker end without a traceback if its driver process is killed during the start.

    ``multiprocessing`` has no option for this, so its command line is patched.
    """
    written = spawn.get_command_line

    def silenced(**options: object) -> list[str]:
        words = written(**options)
        return [_SILENT + word if last == "-c" else word for last, word in pairwise(["", *words])]

    spawn.get_command_line = silenced
    try:
        yield
    finally:
        spawn.get_command_line = written
