"""Classification of process exits: crashed by itself, killed from outside, or out of memory."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

from dse.core.metric import FailureKind

_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that users, schedulers and the kernel send.

A crash of the program itself raises SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL or others.
"""

_SHELL = 128
"""A shell whose command was ended by signal n exits with 128 + n (POSIX, Shell Command Language)"""

_FORWARDED = (signal.SIGKILL, signal.SIGTERM)
"""Signals that a parent process may report as exit status when a child was killed from outside."""

_ROOT = Path("/sys/fs/cgroup")


def kind_of_death(number: int, *, short: bool = False) -> FailureKind:
    """Classify a process's end by a signal: out of memory, crashed or lost.

    Args:
        number: the signal number.
        short: whether the kernel's out-of-memory killer ended a process in the meantime.
    """
    if number == signal.SIGKILL and short:
        return "memory"
    return "lost" if number in _OUTSIDE else "crashed"


def describe_death(number: int, *, short: bool = False) -> str:
    """Return the signal's name; for SIGKILL, also whether memory was or may have been short.

    Args:
        number: the signal number.
        short: whether the kernel's out-of-memory killer ended a process in the meantime.
    """
    if number != signal.SIGKILL:
        return signal_name(number)
    return "SIGKILL: the kernel was short of memory" if short else "SIGKILL; was memory short?"


def forwarded_signal(status: int) -> int:
    """Return the signal encoded in an exit status of 128 + signal; 0 if it encodes none.

    Only SIGKILL and SIGTERM are recognized.
    """
    return status - _SHELL if status - _SHELL in _FORWARDED else 0


def signal_name(number: int) -> str:
    """Return the signal's name, such as ``SIGTERM``, or ``signal 50`` if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def count_memory_kills() -> int:
    """Return how often the out-of-memory killer ended a process of this process's cgroup.

    The count never decreases; it is 0 if the kernel does not provide it.

    Source:
        ``oom_kill`` in ``memory.events`` (Documentation/admin-guide/cgroup-v2.rst) and in
        ``memory.oom_control`` (cgroup-v1/memory.rst) of the Linux kernel.
    """
    return sum(_read_count(path) for path in _counters())


def _counters() -> Iterator[Path]:
    """Yield the files with this process's out-of-memory counters, of cgroup v1 and v2."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            root, name = _ROOT / "memory", "memory.oom_control"
        elif number == "0":
            root, name = _ROOT, "memory.events"
        else:
            continue
        own = root / group.lstrip("/") / name
        yield own if own.exists() else root / name


def _read_count(path: Path) -> int:
    try:
        words = dict(line.split(None, 1) for line in path.read_text().splitlines() if " " in line)
        return int(words.get("oom_kill", 0))
    except (OSError, ValueError):
        return 0
