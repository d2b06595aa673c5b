"""Line-oriented communication with a child process, with time-outs and detection of its end."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack

from dse.system.process_guard import Watchdog, start_program
from dse_evaluators.generic.process import Program, Tail

_CHUNK = 65_536
_LONGEST_LINE = 1 << 24
_LAST_WORDS = 2_000
_SETTLE_S = 0.2
"""Time to wait, in seconds, for the exit status of a program that has closed its stdout."""


class TimedOut(Exception):  # noqa: N818 - it is what happened
    """Raised if a child process does not respond with a line within the time limit."""


class ProcessExitError(Exception):
    """Raised if a child process has closed its stdout or exited."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


class Running:
    """Child process that exchanges lines of text with this process.

    The child runs in a session of its own. After ``close`` no process of the child's process group
    is left; if this process is killed, a watchdog process kills that group instead.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(self, program: Program) -> None:
        self._stack = ExitStack()
        self._owner = os.getpid()
        self._closed = False
        watchdog = self._stack.enter_context(Watchdog())
        try:
            self._program = start_program(
                program.run, watchdog, stdin=subprocess.PIPE, cwd=program.cwd, env=program.env
            )
        except BaseException:
            self._stack.close()
            raise
        self._process = self._program.process
        self._stdin, self._stdout, self._stderr = self._pipes()
        self._received = bytearray()
        self._words = Tail(_LAST_WORDS)

    @property
    def words(self) -> str:
        """End of the process's stderr output, for error messages."""
        return self._words.kept.decode(errors="replace").strip()

    @property
    def waits(self) -> bool:
        """Whether the process is idle: open, owned by this process, and without unread output."""
        if self._closed or not self._ours:
            return False
        with contextlib.suppress(BlockingIOError):
            self._received += os.read(self._stdout, _CHUNK)
            return False
        return not self._received

    def exchange(self, line: bytes, timeout_s: float) -> bytes:
        """Send a line to the process and return the line that it writes in response.

        Raises:
            TimedOut: the process did not read the request or answer within the time.
            ProcessExitError: the process closed its stdout or exited.
            ValueError: the output exceeds the maximum length without an end of line.
        """
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            selector.register(self._stdin, selectors.EVENT_WRITE)
            left = memoryview(line + b"\n")
            while b"\n" not in self._received:
                self._check_length()
                ready = _ready(selector, deadline)
                if self._stdin in ready:
                    left = self._write_some(left)
                    if not left:
                        selector.unregister(self._stdin)
                if self._stderr in ready and not self._heard():
                    selector.unregister(self._stderr)
                if self._stdout in ready:
                    self._read_stdout()
        answer, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        return answer

    def close(self) -> None:
        """End the program and its child processes; in a forked copy of the owner, do nothing."""
        if self._closed or not self._ours:
            return
        self._closed = True
        try:
            self._program.stop()
            while self._heard_more():
                pass
        finally:
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
            self._stack.close()

    @property
    def _ours(self) -> bool:
        return self._owner == os.getpid()

    def _pipes(self) -> Iterator[int]:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            yield pipe.fileno()

    def _write_some(self, left: memoryview) -> memoryview:
        """Write a part of ``left`` to stdin and return the rest; empty if stdin is closed.

        A process that closed its stdin has usually ended, which reading its stdout then reports.
        """
        try:
            return left[os.write(self._stdin, left[:_CHUNK]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            return left[:0]

    def _heard(self) -> bool:
        """Read a chunk of stderr and keep it for error messages; return False at its end."""
        chunk = os.read(self._stderr, _CHUNK)
        self._words.take(chunk)
        return bool(chunk)

    def _heard_more(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return self._heard()
        return False

    def _read_stdout(self) -> None:
        chunk = os.read(self._stdout, _CHUNK)
        self._received += chunk
        if not chunk:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SETTLE_S)
            raise ProcessExitError(self._process.poll())

    def _check_length(self) -> None:
        if len(self._received) > _LONGEST_LINE:
            raise ValueError(f"wrote {len(self._received)} bytes without an end of line")


def _ready(selector: selectors.BaseSelector, deadline: float) -> set[object]:
    """Wait until pipes are ready and return these; raise TimedOut at the deadline."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimedOut
    return {key.fileobj for key, _ in selector.select(left_s)}
