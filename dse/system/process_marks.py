"""Tracking of processes by an environment variable, which survives ``setsid`` and double forks."""

import os
import secrets
import signal
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

MARK = "DSE_MARK_"
"""Prefix of the environment variable that marks a program and all its descendants."""


def new_mark() -> str:
    """Return a new variable name to mark one program and, by inheritance, its descendants.

    Nested programs inherit the marks of all programs around them, so that killing by the mark of
    an outer program includes those.
    """
    return f"{MARK}{secrets.token_hex(8)}"


def run_mark(folder: str) -> str:
    """Return the variable name that marks the programs that run in a folder, one at a time.

    It serves to find a program that an earlier attempt left running there. Wardens, which end a
    driver's programs when it dies, do not search for it, because they would also find the next
    program.
    """
    return f"DSE_RUN_{sha256(folder.encode()).hexdigest()[:16]}"


def marks_of(pids: Iterable[int]) -> set[str]:
    """Return the marks of these processes, as far as ``/proc`` is readable."""
    found: set[str] = set()
    for pid in pids:
        with suppress(OSError):
            names = (word.partition(b"=")[0] for word in _environ(pid).split(b"\0"))
            found |= {name.decode() for name in names if name.startswith(MARK.encode())}
    return found


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def end_marked(mark: str, rounds: int = 20) -> None:
    """Kill every process that has the mark, as far as ``/proc`` is readable.

    Processes forked meanwhile are found in the next of up to ``rounds`` rounds. The warden, a
    helper process that ends an evaluator's programs if the evaluator is killed, executes the source
    text of this function, so it may use only what the warden imports.
    """
    wanted = b"\0" + mark.encode() + b"="
    for _ in range(rounds):
        found = 0
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in b"\0" + path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)
                    found += 1
            except OSError:  # another user's process, or one that has ended
                continue
        if not found:
            return
