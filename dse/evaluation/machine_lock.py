"""Lock of this machine: a timing runs alone, other measurements run together."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portalocker import LockFlags

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
    from portalocker import LockFlags, unlock

    with _file("gate") as gate, _file("machine") as machine:
        _lock(gate, LockFlags.EXCLUSIVE, on_wait)
        _lock(machine, LockFlags.EXCLUSIVE if alone else LockFlags.SHARED, on_wait)
        unlock(gate)
        yield


def _lock(file: int, kind: LockFlags, on_wait: Callable[[str], None]) -> None:
    from portalocker import AlreadyLocked, LockFlags, lock

    try:
        lock(file, kind | LockFlags.NON_BLOCKING)
    except AlreadyLocked:
        on_wait(WAITS)
        lock(file, kind)
        on_wait(GOES_ON)


@contextmanager
def _file(name: str) -> Iterator[int]:
    """A file of all users: to be locked it need only be readable."""
    path = Path(tempfile.gettempdir()) / f"dse-{name}.lock"
    how = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
    try:
        file = os.open(path, how)
    except FileNotFoundError:
        file = os.open(path, how | os.O_CREAT, 0o644)
    try:
        yield file
    finally:
        os.close(file)
