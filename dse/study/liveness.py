"""Identity of this machine and process, and liveness check of other local drivers."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from dse.core.trial import Driver

_PROC = Path("/proc")
_OVER = ("Z", "X")
"""States of a process that has ended but is not reaped yet, see proc(5)."""


@cache
def here() -> str:
    """Return an identifier of this machine: host name, boot id and pid namespace.

    The namespace is included because two containers may share a host name but not their processes.
    """
    parts = [platform.node(), _boot()[:8], _pid_space()]
    return " ".join(part for part in parts if part)


def read_start_ticks(pid: int) -> str:
    """Return the start time of a local process in ticks since boot; empty if it has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    # The program's name is in brackets and may itself contain brackets, see proc(5).
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in _OVER else fields[19]


def gone(driver: Driver) -> bool:
    """Return whether the driver ran on this machine and its process has ended; false if unknown."""
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
