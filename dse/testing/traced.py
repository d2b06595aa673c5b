"""Context manager that records the processes and connections started by a block of code."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

STARTING = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "os.forkpty",
        "pty.spawn",
    }
)
CONNECTING = frozenset(
    {
        "socket.connect",
        "socket.sendto",
        "socket.bind",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
    }
)


@dataclass
class _Ear:
    """Audit hook that records program starts and connections while it is ``on``."""

    on: bool = False
    files: Collection[str] = ()
    found: list[str] = field(default_factory=list)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        reads = event == "open" and str(arguments[0]) in self.files
        if reads or event in STARTING or event in CONNECTING:
            self.found.append(f"{event} {arguments!r:.300}")


@contextmanager
def traced(files: Collection[str] = ()) -> Iterator[list[str]]:
    """Yield a list to which each program start and connection inside the block is appended.

    All threads of this process are traced, but not its child processes.

    Args:
        files: paths, as passed to ``open``, whose opening is recorded as well.
    """
    ear = _ear()
    ear.on, ear.files, ear.found = True, files, []
    try:
        yield ear.found
    finally:
        ear.on = False


@cache
def _ear() -> _Ear:
    ear = _Ear()
    sys.addaudithook(ear.hear)  # audit hooks cannot be removed, so it is added only once
    return ear
