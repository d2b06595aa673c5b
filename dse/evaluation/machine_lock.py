"""Whose turn it is on this machine: a timing runs alone, other measurements run together."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

WAITS = "waits"
GOES_ON = "goes on"


@contextmanager
def turn(*, alone: bool, on_wait: Callable[[str], None]) -> Iterator[None]:
    """A turn on this machine, among all processes that take turns.

    The locks are of the operating system: a process that dies holds none. Who waits to be alone
    keeps the gate shut meanwhile, so that those who come together cannot keep it out for ever.

    Args:
        alone: nobody else has a turn at the same time.
        on_wait: told ``waits`` before a wait, and ``goes on`` after it.
    """
    with _file("gate") as gate, _file("machine") as machine:
        _lock(gate, fcntl.LOCK_EX, on_wait)
        _lock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, on_wait)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


def _lock(file: int, kind: int, on_wait: Callable[[str], None]) -> None:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        on_wait(WAITS)
        fcntl.flock(file, kind)
        on_wait(GOES_ON)


@contextmanager
def _file(name: str) -> Iterator[int]:
    """A file of all users: to be locked it need only be readable."""
    path = Path(tempfile.gettempdir()) / f"dse-{name}.lock"
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CREAT, 0o644)
    try:
        yield file
    finally:
        os.close(file)
