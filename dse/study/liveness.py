"""Identity of this process, and the check whether another one on this machine still lives."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from dse.core.trial import Driver

_PROC = Path("/proc")
_OVER = ("Z", "X")
"""States of a process that has ended and is only waited for: proc(5)."""


@cache
def here() -> str:
    """This machine as its processes see one another: its name, its boot, its space of pids.

    Two containers may have one name and know nothing of each other's processes.
    """
    parts = [platform.node(), _boot()[:8], _pid_space()]
    return " ".join(part for part in parts if part)


def read_start_ticks(pid: int) -> str:
    """Return the start time of a local process in ticks since boot; empty if it has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    # The name of the program is in brackets and may hold anything, brackets too: proc(5).
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in _OVER else fields[19]


def gone(driver: Driver) -> bool:
    """Return whether the driver ran on this machine and has ended; false if unknown."""
    if driver.host != here():
        return False
    if _PROC.joinpath("self", "stat").exists():
        return read_start_ticks(driver.pid) != driver.started
    try:
        os.kill(driver.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _pid_space() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink()).removeprefix("pid:").strip("[]")
    except OSError:
        return ""
