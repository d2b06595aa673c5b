"""Pool of worker processes that search ranges of an enumeration concurrently."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

from dse.core.problem import Problem
from dse.core.values import Floats
from dse.errors import StudyError
from dse.optimizers.exact.running_front import RunningFront
from dse.system.credentials import children_environment

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

IndexRange = tuple[int, int]
"""First place and end place (exclusive)."""


def portable(problem: Problem) -> bytes | None:
    """Return the problem pickled for worker processes; ``None`` if workers could not load it.

    Workers cannot load functions that are defined in the main script or inside another function.
    """
    try:
        pickled = pickle.dumps(problem)
    except Exception:  # noqa: BLE001 - a plug-in may refuse in any way
        return None
    return None if b"__main__" in pickled else pickled


class WorkerPool:
    """Pool of worker processes that search ranges of an enumeration, each with its own pipe.

    Workers are fresh interpreters, never forks, with one thread each. Ctrl-C does not reach them:
    they end with :meth:`close` or with their parent process.
    """

    def __init__(self, problem: bytes, workers: int) -> None:
        self._workers: list[_Worker] = []
        try:
            for _ in range(workers):
                self._workers.append(_Worker(problem))
        except BaseException:
            self.close()
            raise

    def searched(
        self, ranges: Iterable[IndexRange], beaters: Callable[[int], Floats]
    ) -> Iterator[tuple[int, RunningFront]]:
        """Search ranges of designs; yield each range's first index and its front.

        Args:
            ranges: first and end index of each range of designs.
            beaters: function that returns known losses of designs before an index.

        Raises:
            StudyError: a worker has ended or failed.
        """
        left = iter(ranges)
        for worker in self._workers:
            worker.take(next(left, None), beaters)
        while busy := [worker for worker in self._workers if worker.index_range is not None]:
            ready = wait([worker.pipe for worker in busy])
            for worker in busy:
                if worker.pipe in ready:
                    start, found = worker.answer()
                    worker.take(next(left, None), beaters)
                    yield start, found

    def close(self) -> None:
        """Kill all worker processes."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()


class _Worker:
    """Handle, in the parent process, of one worker process."""

    def __init__(self, problem: bytes) -> None:
        self.index_range: IndexRange | None = None
        self.pipe: Connection[Any, Any]
        self.pipe, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            code = f"from dse.optimizers.exact.pool_worker import serve; serve({handle})"
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a fixed command
                [sys.executable, "-P", "-c", code],
                pass_fds=[handle],
                stdin=subprocess.DEVNULL,
                env=_environment(sys.path),
                start_new_session=True,
            )
        with suppress(ConnectionError):  # a dead worker is reported by answer()
            self.pipe.send_bytes(problem)

    def take(self, index_range: IndexRange | None, beaters: Callable[[int], Floats]) -> None:
        self.index_range = index_range
        if index_range is not None:
            with suppress(ConnectionError):
                self.pipe.send((*index_range, beaters(index_range[0])))

    def answer(self) -> tuple[int, RunningFront]:
        assert self.index_range is not None
        try:
            reply = self.pipe.recv()
        except (EOFError, ConnectionError):
            reply = f"it ended with status {self._process.wait()}"
        if isinstance(reply, RunningFront):
            return self.index_range[0], reply
        raise StudyError(
            f"a process that searched the designs failed: {reply}",
            hint="was memory short? Try again with fewer workers: "
            "optimizer: {use: exhaustive, workers: 1}",
        )

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.pipe.close()


def _environment(path: Sequence[str]) -> dict[str, str]:
    """Return a worker's environment variables: the import path, and one thread per library.

    Numbers of threads that the user has set are kept. Libraries read them when they are imported.
    """
    return {
        **dict.fromkeys(_THREADS, "1"),
        **children_environment(),
        "PYTHONPATH": os.pathsep.join(path),
    }
