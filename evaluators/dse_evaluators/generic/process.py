"""Execution of an untrusted program that may crash, hang, flood its pipes or leave children."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from dse.system.process_guard import GuardedProgram, Watchdog, start_program

_TICK_S = 0.1
"""Interval of polling, in seconds, for the end of a program whose children hold its pipes open."""

_CHUNK = 65_536
_TAIL = {"stdout": 1_048_576, "stderr": 16_384}
"""Number of trailing bytes that are kept of each stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Command line with its working directory and additional environment variables."""

    run: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Description of the program for users: command line, working directory, variables."""
        folder = f", in {self.cwd}" if self.cwd else ""
        variables = f", with {', '.join(sorted(self.env))} set" if self.env else ""
        return f"{shlex.join(self.run)}{folder}{variables}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """Outcome of a run; ``status`` is negative for a signal, and meaningless after a time-out."""

    status: int
    timed_out: bool
    stdout: str
    stderr: str


def run(
    program: Program,
    given: bytes,
    *,
    timeout_s: float,
    watchdog: Watchdog,
    on_line: Callable[[bytes], None] = lambda _: None,
) -> ProcessResult:
    """Run a program; return its outcome and the end of its output.

    ``given`` is passed on stdin. ``on_line`` is called with each complete line of stdout; an
    exception from it ends the program.

    The program runs in its own session. When this function returns or raises, no process of that
    session's process group is left, nor any process that the program started in another
    session. If this process is killed, the watchdog kills them instead.

    Raises:
        OSError: the program cannot be started.
    """
    started = _start(program, given, watchdog)
    process = started.process
    tails = {name: Tail(most) for name, most in _TAIL.items()}
    tails["stdout"] = Tail(_TAIL["stdout"], on_line)
    try:
        in_time = _follow_process(process, tails, time.monotonic() + timeout_s)
    finally:
        started.stop()
        _drain(process, tails)
    return ProcessResult(
        status=process.returncode,
        timed_out=not in_time,
        stdout=tails["stdout"].kept.decode(errors="replace"),
        stderr=tails["stderr"].kept.decode(errors="replace"),
    )


class Tail:
    """Reader of a pipe that keeps its last bytes and passes each complete line to ``on_line``."""

    def __init__(self, most: int, on_line: Callable[[bytes], None] = lambda _: None) -> None:
        self.kept = bytearray()
        self._most = most
        self._on_line = on_line
        self._open = b""

    def take(self, chunk: bytes) -> None:
        """Append received bytes, drop those over the limit, and pass on the lines they complete."""
        self.kept += chunk
        del self.kept[: max(0, len(self.kept) - self._most)]
        *whole, begun = (self._open + chunk).split(b"\n")
        self._open = begun[-self._most :]
        for line in whole:
            tell, self._on_line = self._on_line, lambda _: None
            tell(line)
            self._on_line = tell


def _start(program: Program, given: bytes, watchdog: Watchdog) -> GuardedProgram:
    with tempfile.TemporaryFile() as stdin:  # a pipe would block on a program that does not read
        stdin.write(given)
        stdin.seek(0)
        return start_program(program.run, watchdog, stdin=stdin, cwd=program.cwd, env=program.env)


def _follow_process(
    process: subprocess.Popen[bytes], tails: Mapping[str, Tail], deadline: float
) -> bool:
    """Read the pipes until the program ends; return whether it ended before the deadline."""
    with selectors.DefaultSelector() as selector:
        for name, pipe in _pipes(process):
            os.set_blocking(pipe, False)
            selector.register(pipe, selectors.EVENT_READ, name)
        while selector.get_map():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            for key, _ in selector.select(min(left_s, _TICK_S)):
                if not _read_pipe(key.fd, key.data, tails):
                    selector.unregister(key.fd)
            if process.poll() is not None:
                return True  # its children may hold the pipes open forever
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
    return process.returncode is not None


def _read_pipe(pipe: int, name: str, tails: Mapping[str, Tail]) -> bool:
    """Read the content of a pipe that is ready; return False at its end."""
    chunk = os.read(pipe, _CHUNK)
    tails[name].take(chunk)
    return bool(chunk)


def _drain(process: subprocess.Popen[bytes], tails: Mapping[str, Tail]) -> None:
    """Read the remaining output of the pipes, which other processes may hold open; close them."""
    try:
        for name, pipe in _pipes(process):
            with contextlib.suppress(BlockingIOError):
                for _ in range(_TAIL[name] // _CHUNK + 1):
                    if not _read_pipe(pipe, name, tails):
                        break
    finally:
        for end in (process.stdout, process.stderr):
            if end is not None:
                end.close()


def _pipes(process: subprocess.Popen[bytes]) -> Iterator[tuple[str, int]]:
    for name, end in (("stdout", process.stdout), ("stderr", process.stderr)):
        assert end is not None
        yield name, end.fileno()
