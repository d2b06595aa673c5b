"""Start of a worker process: its environment, and its driver's state meanwhile."""

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
"""How many threads a numeric library may use, as each of them wants to be told."""

_SILENT = (
    "import pickle, sys; sys.excepthook = lambda kind, *more: None "
    "if kind in (EOFError, pickle.UnpicklingError) else sys.__excepthook__(kind, *more); "
)
"""What a process does before it reads what it is to be: too little, if its driver was killed."""


@contextmanager
def birth(*, main: bool) -> Iterator[None]:
    """Prepare for a process that is spawned within the block.

    Args:
        main: it needs what the main script defines.
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

    They read it when they are imported, and a spawned process imports before it runs our first
    line: so it must be in the environment that it is born with.
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
    """The main module hidden, where a worker has no need to import it again.

    A spawned process imports the main script: slow for a command, impossible for standard input,
    and without end for a script that lacks ``if __name__ == "__main__"``.
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
    """Hold Ctrl-C back; the process inherits that, until it can ignore it."""
    resource_tracker.ensure_running()  # it would let Ctrl-C through when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _silent_orphan() -> Iterator[None]:
    """Let the process end without a traceback where its driver is killed while it starts it.

    The library has no option for it.
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
