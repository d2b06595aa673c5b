"""Identity of this machine and process, and liveness check of other local drivers."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from dse.core.trial import Driver
from dse.system.process_tree import read_start_time

_PROC = Path("/proc")


@cache
def here() -> str:
    """Return an identifier of this machine: host name, boot id and pid namespace.

    The namespace is included because two containers may share a host name but not their processes.
    """
    parts = [platform.node(), _boot()[:8], _pid_space()]
    return " ".join(part for part in parts if part)


def gone(driver: Driver) -> bool:
    """Return whether a process of this machine has ended; false if that cannot be determined."""
    if driver.host != here():
        return False
    started = read_start_time(driver.pid)
    if started or driver.started:
        return started != driver.started
    import psutil

    return not psutil.pid_exists(driver.pid)


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
