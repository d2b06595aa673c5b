"""Process that answers each line with a line, until its time is over or it ends."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack

from dse.system.credentials import children_environment
from dse.system.process_marks import new_mark
from dse_evaluators.generic.process import Program, Tail, stop
from dse_evaluators.generic.warden import Warden

_CHUNK = 65_536
_LONGEST_LINE = 1 << 24
_LAST_WORDS = 2_000
_SETTLE_S = 0.2
"""How long to wait for the last words of a program that has closed its stdout."""


class TimedOut(Exception):  # noqa: N818 - it is what happened
    """There was no line in time."""


class ProcessExitError(Exception):
    """The process has closed its stdout, or died."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


class Running:
    """A program that was started, in a session of its own.

    After ``close`` no process of its group is left; when this process is killed, a warden sees to
    it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, program: Program) -> None:
        self._stack = ExitStack()
        self._owner = os.getpid()
        self._closed = False
        self._mark = new_mark()
        warden = self._stack.enter_context(Warden())
        try:
            self._process = subprocess.Popen(  # noqa: S603 - to run the user's program is the purpose
                program.run,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=program.cwd,
                env={**children_environment(), **program.env, self._mark: "1"},
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self._stack.close()
            raise
        warden.watch(self._process.pid, self._mark)
        self._stdin, self._stdout, self._stderr = self._pipes()
        self._said = bytearray()
        self._words = Tail(_LAST_WORDS)

    @property
    def words(self) -> str:
        """The last that it wrote to stderr."""
        return self._words.kept.decode(errors="replace").strip()

    @property
    def waits(self) -> bool:
        """True if it waits for a line: it is alive, is ours and has no unrequested output."""
        if self._closed or not self._ours:
            return False
        with contextlib.suppress(BlockingIOError):
            self._said += os.read(self._stdout, _CHUNK)
            return False
        return not self._said

    def exchanged(self, line: bytes, timeout_s: float) -> bytes:
        """Send a line and return the line that answers it.

        Raises:
            TimedOut: it does not say one, or does not listen, within the time.
            Ended: it says none any more.
            ValueError: the line is longer than any answer.
        """
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            selector.register(self._stdin, selectors.EVENT_WRITE)
            left = memoryview(line + b"\n")
            while b"\n" not in self._said:
                self._check_length()
                ready = _ready(selector, deadline)
                if self._stdin in ready:
                    left = self._told(left)
                    if not left:
                        selector.unregister(self._stdin)
                if self._stderr in ready and not self._heard():
                    selector.unregister(self._stderr)
                if self._stdout in ready:
                    self._read_stdout()
        answer, _, rest = bytes(self._said).partition(b"\n")
        self._said = bytearray(rest)
        return answer

    def close(self) -> None:
        """End it and all that it started; in a forked process it is left to its owner."""
        if self._closed or not self._ours:
            return
        self._closed = True
        try:
            stop(self._process, self._mark)
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

    def _told(self, left: memoryview) -> memoryview:
        """Write to stdin and return what is left; nothing if the process no longer reads.

        It will have ended then.
        """
        try:
            return left[os.write(self._stdin, left[:_CHUNK]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            return left[:0]

    def _heard(self) -> bool:
        """Keeps what stderr has; False at its end."""
        chunk = os.read(self._stderr, _CHUNK)
        self._words.take(chunk)
        return bool(chunk)

    def _heard_more(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return self._heard()
        return False

    def _read_stdout(self) -> None:
        chunk = os.read(self._stdout, _CHUNK)
        self._said += chunk
        if not chunk:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SETTLE_S)
            raise ProcessExitError(self._process.poll())

    def _check_length(self) -> None:
        if len(self._said) > _LONGEST_LINE:
            raise ValueError(f"said {len(self._said)} bytes without an end of line")


def _ready(selector: selectors.BaseSelector, deadline: float) -> set[object]:
    """The pipes that are ready."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimedOut
    return {key.fileobj for key, _ in selector.select(left_s)}
