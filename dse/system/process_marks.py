"""Processes by a mark in their environment, which no session or second fork takes from them."""

import os
import secrets
import signal
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

MARK = "DSE_MARK_"
"""How the variable begins that marks the environment of a program and of all that it starts."""


def new_mark() -> str:
    """Return a variable for the environment of one program, which all that it starts inherits.

    Each program has its own: one that runs others so is found together with all of theirs.
    """
    return f"{MARK}{secrets.token_hex(8)}"


def run_mark(folder: str) -> str:
    """Return a variable for the environment of all programs that work in a folder, one by one.

    A program that was left alone there is found by it. Wardens do not look for it: they would find
    the next program, too.
    """
    return f"DSE_RUN_{sha256(folder.encode()).hexdigest()[:16]}"


def marks_of(pids: Iterable[int]) -> set[str]:
    """Return the marks that these processes carry, as far as ``/proc`` shows them."""
    found: set[str] = set()
    for pid in pids:
        with suppress(OSError):
            names = (word.partition(b"=")[0] for word in _environ(pid).split(b"\0"))
            found |= {name.decode() for name in names if name.startswith(MARK.encode())}
    return found


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def end_marked(mark: str, rounds: int = 20) -> None:
    """Kill every process that has the mark, as far as ``/proc`` shows it.

    What forks meanwhile is found in the next round. The warden runs the text of this function, so
    it needs nothing but what is imported there.
    """
    wanted = b"\0" + mark.encode() + b"="
    for _ in range(rounds):
        found = 0
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in b"\0" + path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)
                    found += 1
            except OSError:  # it is another user's, or it has ended
                continue
        if not found:
            return
