"""Start and end of programs that must not outlive this process, even if it is killed.

A process that is killed by SIGKILL cannot clean up. Linux can signal a child whose parent died
(``PR_SET_PDEATHSIG``), but not the child's children, and setting it needs code between fork and
exec, which is not safe in a process with threads. A watchdog is a separate process that holds the
read end of a pipe; this process holds the write end: end-of-file on the pipe means that this
process died, on every Unix.

The kernel's count of processes that it killed for lack of memory tells such a death of a program
from others.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Self

from dse.system import process_tree
from dse.system.credentials import children_environment
from dse.system.process_tree import MARK, end_marked, kill_group, read_start_time

GRACE_S = 2.0
"""Time between SIGTERM and SIGKILL, in seconds, for a program to clean up."""

_END_S = 10.0
_CGROUPS = Path("/sys/fs/cgroup")


def run_mark(folder: str) -> str:
    """Return the name of the environment variable that marks programs started in a folder.

    Only one program runs in the folder at a time; by this mark, a later attempt finds a program
    that an earlier attempt left running. A watchdog, which ends the programs of a process that
    dies, does not use this mark, because the next program has it as well.
    """
    return f"DSE_RUN_{sha256(folder.encode()).hexdigest()[:16]}"


class Watchdog:
    """Watchdog process that ends the programs of this process if this process dies.

    As a context manager it is dismissed at the end of the block. It ends only the programs that the
    last call of :meth:`watch` names.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a constant program
            [sys.executable, "-I", "-S", process_tree.__file__, *filter(None, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=children_environment(),
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin

    def watch(
        self,
        *,
        group: int | None = None,
        mark: str | None = None,
        processes: Iterable[int] = (),
        folder: str | None = None,
    ) -> None:
        """Set the processes to end and the folder to remove if this process dies.

        The new settings replace earlier ones.

        Args:
            group: a process group to kill.
            mark: the mark of programs to kill.
            processes: the ids of processes to kill; an id that another process has by then is
                skipped.
            folder: a folder to remove.
        """
        known = [(pid, started) for pid in processes if (started := read_start_time(pid))]
        leftovers = {"group": group, "mark": mark, "processes": known, "folder": folder}
        os.write(self._pipe.fileno(), f"{json.dumps(leftovers)}\n".encode())

    @property
    def is_alive(self) -> bool:
        """Whether the watchdog process still runs; it may have been killed from outside."""
        return self._process.poll() is None

    def disown(self) -> None:
        """Close this process's end of the watchdog's pipe after a fork; the parent keeps it."""
        self._pipe.close()

    def close(self) -> None:
        """Make the watchdog clean up now, and wait for it for a limited time."""
        self._pipe.close()
        with suppress(subprocess.TimeoutExpired):  # it continues on its own
            self._process.wait(_END_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()


class WatchdogPool:
    """Pool of reusable watchdog processes, because starting one takes milliseconds.

    The watchdogs end with the pool. A copy of the pool in another process, pickled or forked,
    starts new watchdogs.
    """

    def __init__(self) -> None:
        self._free: list[Watchdog] = []
        weakref.finalize(self, _dismiss, self._free, os.getpid())
        if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
            os.register_at_fork(after_in_child=partial(_disown, weakref.ref(self)))

    def __reduce__(self) -> tuple[type[WatchdogPool], tuple[()]]:
        return WatchdogPool, ()

    @contextmanager
    def lend(self) -> Iterator[Watchdog]:
        """Lend a watchdog to one thread; it is kept unless the block raises."""
        watchdog = self._take()
        try:
            yield watchdog
            watchdog.watch()
        except BaseException:
            watchdog.__exit__()
            raise
        self._free.append(watchdog)

    def _take(self) -> Watchdog:
        with suppress(IndexError):
            while True:
                watchdog = self._free.pop()
                if watchdog.is_alive:
                    return watchdog
                watchdog.__exit__()
        return Watchdog()


def _dismiss(free: list[Watchdog], owner: int) -> None:
    if os.getpid() == owner:
        while free:
            free.pop().__exit__()


def _disown(pool: weakref.ref[WatchdogPool]) -> None:
    """Give up a forked copy of a pool: an open pipe would hide the parent's death."""
    copied = pool()
    free = [] if copied is None else copied._free  # noqa: SLF001 - of the same module
    while free:
        free.pop().disown()


@dataclass(frozen=True, slots=True)
class GuardedProgram:
    """Program in a session of its own, whose descendants inherit a mark.

    A mark is an environment variable. A program that starts inside another guarded program also
    inherits the mark of the outer program, so that killing by the outer program's mark ends the
    inner program, too.
    """

    process: subprocess.Popen[bytes]
    mark: str

    def stop(self) -> None:
        """End the process group: with SIGTERM and a grace period if its leader lives, then SIGKILL.

        Then end every process with the mark in its environment, even in other sessions.
        """
        try:
            if self.process.poll() is None:
                kill_group(self.process.pid, signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(GRACE_S)
        finally:
            kill_group(self.process.pid)
            self.process.wait()
            end_marked(self.mark)


def start_program(
    words: Sequence[str],
    watchdog: Watchdog,
    *,
    stdin: int | IO[bytes],
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> GuardedProgram:
    """Start a program with pipes for its output, guarded by a watchdog process.

    Args:
        words: the program and its arguments.
        watchdog: the watchdog that ends the program if this process dies; it then watches only this
            program.
        stdin: the program's standard input, as for ``subprocess.Popen``.
        cwd: the program's working directory; by default the working directory of this process.
        env: variables to add to the program's environment.

    Raises:
        OSError: the program cannot be started.
    """
    mark = f"{MARK}{secrets.token_hex(8)}"
    process = subprocess.Popen(  # noqa: S603 - to run the user's program is the purpose
        words,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**children_environment(), **(env or {}), mark: "1"},
        bufsize=0,
        start_new_session=True,
    )
    program = GuardedProgram(process, mark)
    try:
        watchdog.watch(group=process.pid, mark=mark)
    except BaseException:
        with process:  # closes its pipes
            program.stop()
        raise
    return program


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
            root, name = _CGROUPS / "memory", "memory.oom_control"
        elif number == "0":
            root, name = _CGROUPS, "memory.events"
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
