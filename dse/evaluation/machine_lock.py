"""Machine-wide lock: exclusive measurements (timings) run alone, other measurements together."""

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
    """Hold the machine's lock inside the block, exclusively or shared with other processes.

    Operating-system file locks are used, so a process that dies holds none. A process that waits
    for exclusive access holds a second lock (the gate), so that later shared holders queue behind
    it and cannot starve it.

    Args:
        alone: whether the lock is exclusive.
        on_wait: called with the text ``waits`` before waiting for the lock, ``goes on`` after it.
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
    """Yield the descriptor of a lock file shared by all users; read access suffices to lock it."""
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
