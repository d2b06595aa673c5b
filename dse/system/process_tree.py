"""Search for processes of this machine, and their termination.

A process is found as a descendant of another, or by a mark: a variable in its environment, which
survives ``setsid`` and double forks. Its id and start time identify it, because ids are reused.

A watchdog (see :mod:`dse.system.process_guard`) runs this file as a program of the standard library
alone. The functions that a watchdog calls therefore do not use psutil on Linux, and modules that
take long to load, such as psutil, are imported where they are used.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

MARK = "DSE_MARK_"
"""Prefix of the environment variable that marks a program and all its descendants."""

_LINUX = sys.platform == "linux"
_LOOK_S = 0.02
_OVER = "ZX"
"""States of a process that has ended but is not reaped yet, see proc(5)."""


def end(pid: int) -> None:
    """Kill a process, its descendants, and its process group.

    Programs started by evaluators carry a mark (an environment variable), by which they are found
    even if they have left both the process tree and the group.
    """
    marks: set[str] = set()
    try:
        members = descendants(pid)
        marks = _marks_of(members) - _marks_of([os.getpid()])
        for member in members:
            _kill(member)
    finally:
        kill_group(pid)
        _kill(pid)
    for mark in marks:
        end_marked(mark)


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process; none if it has ended."""
    import psutil

    try:
        return [one.pid for one in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def runs(pid: int) -> bool:
    """Return whether a process is running; a zombie counts as ended."""
    return read_start_time(pid) != ""


def read_start_time(pid: int) -> str:
    """Return the start time of a local process as a text to compare; empty if it has ended.

    On Linux it is in clock ticks since boot: psutil's public time changes whenever the clock is
    set, and a running driver (process that runs a study) would then count as ended. On other
    systems it is the hash of a process in psutil, which does not depend on the clock either.
    """
    if _LINUX:
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as file:  # noqa: PTH123 - see above
                # The program's name is in brackets and may itself contain brackets, see proc(5).
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in _OVER else fields[19]
    import psutil

    try:
        process = psutil.Process(pid)
        ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        return "" if ended else str(hash(process))
    except psutil.NoSuchProcess:
        return ""


def wait_until_gone(pids: Iterable[int], limit_s: float) -> None:
    """Wait until none of the processes runs, at most ``limit_s`` seconds.

    The function polls, because a process can wait only for its own children.
    """
    until = time.monotonic() + limit_s
    while any(map(runs, pids)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def end_marked(mark: str, rounds: int = 20) -> None:
    """Kill every process of this user that has a mark in its environment.

    Processes forked meanwhile are found in the next of up to ``rounds`` rounds.
    """
    wanted = b"\0" + mark.encode() + b"="
    for _ in range(rounds):
        found = 0
        for pid in _list_pids():
            if wanted in b"\0" + _read_environment(pid):
                _kill(pid)
                found += 1
        if not found:
            return


def kill_group(group: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process group, if there is one that this user may signal."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def clean_up(
    *,
    group: int | None = None,
    mark: str | None = None,
    processes: Iterable[tuple[int, str]] = (),
    folder: str | None = None,
) -> None:
    """Kill processes that a study's process has left running, and remove its temporary folder.

    Args:
        group: a process group.
        mark: the mark (environment variable) of the programs to kill.
        processes: id and start time of each process.
        folder: the folder to remove.
    """
    if group is not None:
        kill_group(group)
    if mark is not None:
        end_marked(mark)
    for pid, started in processes:
        if read_start_time(pid) == started:
            _kill(pid)
    if folder is not None:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _marks_of(pids: Iterable[int]) -> set[str]:
    words = (word for pid in pids for word in _read_environment(pid).split(b"\0"))
    return {word.partition(b"=")[0].decode() for word in words if word.startswith(MARK.encode())}


def _list_pids() -> list[int]:
    if _LINUX:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    import psutil

    return psutil.pids()


def _read_environment(pid: int) -> bytes:
    """Return the environment of a process, as in proc(5); empty if it is not readable.

    The environment is searched after each evaluation; psutil would take 1.5 times as long on Linux.
    """
    if _LINUX:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - see above
                return file.read()
        except OSError:
            return b""
    import psutil

    with suppress(psutil.Error):
        return "\0".join(map("=".join, psutil.Process(pid).environ().items())).encode()
    return b""


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":  # wait until the driver has ended; then clean up what it named last
    sys.path += sys.argv[1:]  # for psutil, where it is needed
    lines = sys.stdin.read().split("\n")[:-1]  # what follows was not written to its end
    if lines:
        import json

        clean_up(**json.loads(lines[-1]))
