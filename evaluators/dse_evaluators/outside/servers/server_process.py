"""Server program that runs between measurements, of which nothing is left when it is closed."""

from __future__ import annotations

import http.client
import os
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO

import psutil

from dse.core.metric import Failure
from dse.evaluation.process_exit import describe_death, kind_of_death
from dse.system.process_guard import Watchdog, count_memory_kills, start_program
from dse_evaluators.generic.process import Program, Tail
from dse_evaluators.outside.servers.streaming_client import Endpoint

_LAST_WORDS = 2_000
_POLL_S = 0.05
_SETTLE_S = 0.5


class ServerError(Exception):
    """Raised if a server does not start; holds the reason to record for the trial."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class ServerProcess:
    """Server process in its own session; a watchdog ends it if this process is killed.

    Args:
        program: the command line.
        key: launch settings that the command line stands for; a running server is reused for an
            equal key.

    Raises:
        ServerError: the program cannot be started.
    """

    def __init__(self, program: Program, key: object) -> None:
        self.key = key
        self._owner = os.getpid()
        self._memory_kills = count_memory_kills()
        stack = ExitStack()
        watchdog = stack.enter_context(Watchdog())
        try:
            guarded = start_program(
                program.run, watchdog, stdin=subprocess.DEVNULL, cwd=program.cwd, env=program.env
            )
        except OSError as error:
            stack.close()
            reason = f"{program.run[0]!r} cannot be started: {error}"
            raise ServerError(Failure(kind="raised", reason=reason)) from error
        except BaseException:
            stack.close()
            raise
        stack.callback(guarded.stop)
        self._process = guarded.process
        self._words = Tail(_LAST_WORDS)
        self._readers = [
            threading.Thread(target=_read_all, args=(pipe, self._words), daemon=True)
            for pipe in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()
        self._finalizer = weakref.finalize(self, _close, stack, os.getpid())

    @property
    def runs(self) -> bool:
        """Whether the server runs and was started by this process."""
        return self._owner == os.getpid() and self._process.poll() is None

    @property
    def words(self) -> str:
        """End of the server's output, for error messages."""
        return self._words.kept.decode(errors="replace").strip()

    def wait_ready(self, endpoint: Endpoint, timeout_s: float) -> None:
        """Wait until the server lists its models.

        Raises:
            ServerError: the server ended, or did not answer within the time.
        """
        deadline = time.monotonic() + timeout_s
        while not is_ready(endpoint, min(deadline, time.monotonic() + 2.0)):
            if self._process.poll() is not None:
                raise ServerError(self.ended())
            if time.monotonic() > deadline:
                reason = f"the server was not ready after {timeout_s:g} s{self._quoted()}"
                raise ServerError(Failure(kind="timeout", reason=reason))
            time.sleep(_POLL_S)

    def ended(self) -> Failure:
        """Return the reason why a server exited or was killed, with the end of its output."""
        status = self._process.wait()
        for reader in self._readers:
            reader.join(_SETTLE_S)
        if status < 0:
            short = count_memory_kills() > self._memory_kills
            death = describe_death(-status, short=short)
            kind = kind_of_death(-status, short=short)
            return Failure(kind=kind, reason=f"the server was killed by {death}{self._quoted()}")
        reason = f"the server ended with the exit status {status}{self._quoted()}"
        return Failure(kind="crashed", reason=reason)

    def memory_bytes(self) -> float:
        """Return the resident memory of the server and its children, in bytes."""
        try:
            top = psutil.Process(self._process.pid)
            return float(sum(_resident(one) for one in (top, *top.children(recursive=True))))
        except psutil.Error:
            return float("nan")

    def close(self) -> None:
        """End the server and everything that it started."""
        self._finalizer()

    def _quoted(self) -> str:
        return f": {self.words}" if self.words else ", without any output"


class KeptServer:
    """Server that keeps running for trials of equal launch settings; a copy starts its own."""

    def __init__(self) -> None:
        self._server: ServerProcess | None = None

    def __reduce__(self) -> tuple[type[KeptServer], tuple[()]]:
        return KeptServer, ()

    def get(self, key: object, start: Callable[[], ServerProcess]) -> ServerProcess:
        """Return the running server of a key, after ending a server of another key.

        Raises:
            ServerError: the server does not start.
        """
        kept = self._server
        if kept is not None and kept.key == key and kept.runs:
            return kept
        self.close()
        self._server = start()
        return self._server

    def close(self) -> None:
        """End the server that is kept running, if any."""
        kept, self._server = self._server, None
        if kept is not None:
            kept.close()


def is_ready(endpoint: Endpoint, deadline: float) -> bool:
    """Return whether a server lists its models before the deadline on the monotonic clock."""
    connection = endpoint.connect(deadline - time.monotonic())
    try:
        connection.request("GET", endpoint.path("v1/models"), headers=dict(endpoint.headers))
        with connection.getresponse() as answer:
            return answer.status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _read_all(pipe: IO[bytes], words: Tail) -> None:
    """Read a pipe to its end, so that the server never blocks on it."""
    with pipe:
        while chunk := pipe.read(65_536):
            words.take(chunk)


def _close(stack: ExitStack, owner: int) -> None:
    if os.getpid() == owner:  # a forked copy has no server of its own
        stack.close()


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
