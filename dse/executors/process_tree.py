"""Ending a process together with all that it started."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dse.system.process_marks import end_marked, marks_of

_LOOK_S = 0.02


def end(pid: int) -> None:
    """Kill the descendants of a process, the group that it leads or led, and itself.

    Programs of evaluators carry a mark, by which what left both the tree and the group is found.
    Where there is no ``/proc``, descendants that left the group live on.
    """
    members = descendants(pid)
    marks = marks_of(members) - marks_of([os.getpid()])
    for member in members:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(member, signal.SIGKILL)
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    for mark in marks:
        end_marked(mark)


def wait_until_gone(pids: Iterable[int], limit_s: float) -> None:
    """Return when none of the processes runs any more, or when the time is up.

    They need not be our children, so there is nothing but to look.
    """
    until = time.monotonic() + limit_s
    while any(map(runs, pids)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process at all levels, as far as ``/proc`` lists them."""
    children: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            children[_parent(stat.read_text())].append(int(stat.parent.name))
    found: list[int] = []
    todo = [pid]
    while todo:
        todo += (more := children[todo.pop()])
        found += more
    return found


def runs(pid: int) -> bool:
    """Return whether the process has not ended; one that was not reaped has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _parent(stat: str) -> int:
    # The name of the program is in brackets and may hold anything, brackets too: proc(5).
    return int(stat.rpartition(")")[2].split()[1])
