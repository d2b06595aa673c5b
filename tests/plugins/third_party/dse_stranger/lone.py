"""A process of its own for every task."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import signal
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from dse.core.metric import Failure, FailureKind
from dse.core.trial import Outcome, State
from dse.protocols import Task, Work


@dataclass(kw_only=True)
class _Run:
    process: SpawnProcess
    answer: Connection
    began_at: float = math.inf  # until its process has started to work

    def outcome(self, timeout_s: float) -> Outcome | None:
        """What became of the task; ``None`` while it is under way."""
        try:
            while self.answer.poll():
                said = self.answer.recv()
                if said is not None:
                    return pickle.loads(said)
                self.began_at = time.monotonic()
        except EOFError:
            self.process.join()
            return _failed("crashed", f"the process ended with {self.process.exitcode}")
        spent_s = time.monotonic() - self.began_at
        if spent_s < timeout_s:
            return None
        return _failed("timeout", f"took more than {timeout_s} s", cost_s=spent_s)

    def end(self) -> None:
        self.answer.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.process.close()


class Lone:
    """Starts a process for each task, so that no task can disturb another.

    Args:
        work: turns tasks into outcomes.
        workers: how many processes may run at once.
        timeout: seconds that a task may take; without one, as long as it likes.
    """

    barrier = False

    def __init__(self, work: Work, *, workers: int = 2, timeout: float = math.inf) -> None:
        self.capacity = workers
        self._work = work
        self._timeout_s = timeout
        self._context = multiprocessing.get_context("spawn")
        self._waiting: deque[Task] = deque()
        self._runs: dict[int, _Run] = {}

    def submit(self, task: Task) -> None:
        self._waiting.append(task)
        self._start()

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        give_up_at = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._runs:
            done = self._done()
            left_s = give_up_at - time.monotonic()
            if done or left_s <= 0:
                return done
            late_at = min(run.began_at for run in self._runs.values()) + self._timeout_s
            next_s = min(left_s, max(0.0, late_at - time.monotonic()))
            answers = [run.answer for run in self._runs.values()]
            wait(answers, None if math.isinf(next_s) else next_s)
        return {}

    def close(self) -> None:
        self._waiting.clear()
        while self._runs:
            self._runs.popitem()[1].end()

    def _start(self) -> None:
        while self._waiting and len(self._runs) < self.capacity:
            task = self._waiting.popleft()
            answer, send = self._context.Pipe(duplex=False)
            process = self._context.Process(target=_work, args=(send, self._work, task))
            process.start()
            send.close()
            self._runs[task.number] = _Run(process=process, answer=answer)

    def _done(self) -> dict[int, Outcome]:
        looked = {number: run.outcome(self._timeout_s) for number, run in self._runs.items()}
        done = {number: outcome for number, outcome in looked.items() if outcome is not None}
        for number in done:
            self._runs.pop(number).end()
        self._start()
        return done


def _failed(kind: FailureKind, reason: str, cost_s: float = 0.0) -> Outcome:
    return Outcome(state=State.FAILED, failure=Failure(kind=kind, reason=reason), cost_s=cost_s)


def _work(answer: Connection, work: Work, task: Task) -> None:
    os.setsid()
    answer.send(None)
    try:
        said = pickle.dumps(work([task])[0])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the task fails, whatever it was
        said = pickle.dumps(_failed("raised", f"{type(error).__name__}: {error}"))
    answer.send(said)
