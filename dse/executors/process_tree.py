"""Termination of a process together with all processes that it started."""

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
    """Kill a process, its descendants, and the process group that it leads or led.

    Programs started by evaluators carry a mark, by which they are found even if they have left both
    the process tree and the group. Without ``/proc``, descendants that left the group survive.
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
    """Wait until none of the processes runs, at most ``limit_s`` seconds.

    It polls, because processes that are not children of this one cannot be waited for.
    """
    until = time.monotonic() + limit_s
    while any(map(runs, pids)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process; none without ``/proc``."""
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
    """Return whether a process is running; a zombie counts as ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _parent(stat: str) -> int:
    # The program's name is in parentheses and may itself contain parentheses: proc(5).
    return int(stat.rpartition(")")[2].split()[1])
