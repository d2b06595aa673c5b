"""Executor on the nodes of a Ray cluster; tasks lost with a node are retried elsewhere."""

from __future__ import annotations

import atexit
import math
import os
import time
from collections import deque

from dse.core.trial import Event, Outcome
from dse.errors import PluginError
from dse.evaluation.reporting import Watcher, unheard
from dse.executors.failures import build_failure
from dse.executors.ray.cluster_resources import rooms_for, wanted_of
from dse.executors.ray.session import START_S, STORE_BYTES, RaySession, import_ray
from dse.executors.ray.worker import LostError, RayWorker, actor_class, end_workers
from dse.executors.worker_environment import THREADS
from dse.executors.worker_process import Beginning, ignore_begin
from dse.protocols import Needs, NeedsResources, Task, Work

_LOOK_S = 1.0
_WAIT_S = 0.2
"""Maximum wait for outcomes, in seconds; short, to notice the end of this node's raylet in time."""

_STARTS = 3
"""Number of consecutive workers that do not start after which the run ends."""

_PATIENCE_S = 60.0
"""Time to wait for a suitable node while no node of the cluster can run a task, in seconds."""


class RayCluster:
    """Executor with workers on the nodes of a Ray cluster, each for one task at a time.

    The work (the function that evaluates tasks) is pickled and put into the cluster once; each
    worker loads it once and reserves the resources in the work's ``needs``. A crash or hang of an
    evaluation fails only the task of that evaluation. A task whose worker is lost, with or without
    its node, fails with the kind ``lost``, after which a study retries the task elsewhere.

    Args:
        address: ``auto``, ``host:port`` or ``ray://host:port`` of a cluster; default: the address
            in ``RAY_ADDRESS``, or else a new local cluster on this machine.
        workers: number of concurrent tasks; default: as many as the cluster has room for.
        timeout_s: time limit of a task in seconds; waiting for the machine lock does not count.
        start_s: time limit for the start of a local cluster, in seconds.
    """

    barrier = False

    def __init__(
        self,
        work: Work,
        *,
        address: str | None = None,
        workers: int | None = None,
        timeout_s: float | None = None,
        start_s: float = START_S,
    ) -> None:
        _check(workers, timeout_s, start_s)
        self.on_report: Watcher = unheard
        self.on_begin: Beginning = ignore_begin
        stated: object = work
        self._wanted = wanted_of(stated.needs if isinstance(stated, NeedsResources) else Needs())
        self._timeout_s = timeout_s
        self._waiting: deque[Task] = deque()
        self._workers: list[RayWorker] = []
        self._events: list[Event] = []
        self._unstarted = 0
        self._hopeless_since: float | None = None
        self._looked_at = time.monotonic()
        self._closed = False
        sent = _pickle_work(work)
        cores = os.cpu_count() or 1
        self._door = RaySession(
            address or os.environ.get("RAY_ADDRESS"),
            cpus=max(workers or cores, cores),
            store_bytes=max(STORE_BYTES, 2 * len(sent)),
            start_s=start_s,
        )
        atexit.register(
            self.close
        )  # runs before Ray's own handler: ends a local cluster, removes its folder
        try:
            self.capacity = self._capacity(workers)
            self._sent = self._door.ray.put(sent)
            self._actor_class = actor_class(self._door.ray, self._wanted)
        except BaseException:
            self.close()
            raise

    def submit(self, task: Task) -> None:
        if self._closed:
            raise RuntimeError("the executor is closed")
        self._waiting.append(task)
        self._assign()

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        try:
            return self._collect_outcomes(timeout_s)
        except ConnectionError as error:  # ray:// client: its reconnection period is over
            raise self._door.head.lost(str(error)) from error

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._waiting.clear()
        try:
            if not self._door.head.gone:
                end_workers(self._door.ray, self._workers)
        finally:
            self._workers.clear()
            self._door.close()

    def events(self) -> list[Event]:
        """Return texts for the user since the last call, such as lost workers."""
        taken, self._events = self._events, []
        return taken

    def _collect_outcomes(self, timeout_s: float | None) -> dict[int, Outcome]:
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._waiting or any(worker.task for worker in self._workers):
            self._door.check_raylet()
            self._assign()
            left_s = until - time.monotonic()
            outcomes = self._poll_outcomes(max(0.0, min(_WAIT_S, left_s)))
            if outcomes or left_s <= 0:
                return outcomes
            if time.monotonic() - self._looked_at >= _LOOK_S:
                self._looked_at = time.monotonic()
                self._check_hope()
        return {}

    def _poll_outcomes(self, timeout_s: float) -> dict[int, Outcome]:
        """Return the outcomes that arrive within a time limit, by task number.

        Meanwhile intermediate reports are forwarded.
        """
        signs = [sign for worker in self._workers for sign in worker.signs]
        if not signs:  # no worker could be requested: the head does not respond
            time.sleep(timeout_s)
            return {}
        come, _ = self._door.ray.wait(signs, num_returns=1, timeout=timeout_s)
        if come:
            come, _ = self._door.ray.wait(signs, num_returns=len(signs), timeout=0)
        outcomes: dict[int, Outcome] = {}
        for worker in list(self._workers):
            task = worker.task
            if worker.report in come:
                worker.hear(self.on_report, self.on_begin)
            outcome = self._settle_worker(worker) if worker.sign in come else None
            if task is not None and outcome is not None:
                outcomes[task.number] = outcome
        return outcomes

    def _settle_worker(self, worker: RayWorker) -> Outcome | None:
        """Return the outcome that a worker has ready, or a failure if the worker was lost.

        If the worker never started, its task is queued again, and the result is ``None``.
        """
        try:
            outcome = worker.outcome()
        except LostError as error:
            task = self._drop(worker)
            if worker.node:
                return build_failure(
                    error.kind, f"its worker was lost on {error.reason}", worker.spent_s
                )
            self._waiting.extendleft([task] if task is not None else [])
            self._count_failed_start(error.reason)
            return None
        self._unstarted = 0
        return outcome

    def _count_failed_start(self, reason: str) -> None:
        """Count a worker that did not start, and record an event for the user.

        Raises:
            PluginError: too many consecutive workers did not start.
        """
        self._tell(f"a worker did not start on {reason}")
        self._unstarted += 1
        if self._unstarted == _STARTS:
            raise PluginError(
                f"workers do not start on the cluster; the last one on {reason}",
                hint="every node needs dse-engine and what the study's evaluators import, "
                "in the driver's versions",
            )

    def _tell(self, text: str) -> None:
        self._events.append(Event(kind="executor", text=text))

    def _assign(self) -> None:
        """Give waiting tasks to free workers; request further workers while tasks wait."""
        free = [worker for worker in self._workers if worker.task is None]
        for worker in sorted(free, key=lambda worker: not worker.placed):
            if worker.lost:
                self._tell(f"a free worker was lost on {worker.node}")
                self._drop(worker)
            elif (task := self._next(worker)) is not None:
                worker.take(task)
        missing = min(len(self._waiting), self.capacity - len(self._workers))
        if missing <= 0 or not self._door.head.answers():
            return
        for _ in range(missing):
            arguments = (self._sent, self._timeout_s, self._environment())
            worker = RayWorker(self._door.ray, self._actor_class, arguments)
            worker.take(self._waiting.popleft())
            self._workers.append(worker)

    def _next(self, free: RayWorker) -> Task | None:
        """Return the next task for a free worker; ``None`` if no task waits.

        A worker that already runs on a node takes over the task of a worker that the cluster has
        not placed on a node yet.
        """
        if free.placed:
            for worker in self._workers:
                if worker.task is not None and not worker.placed:
                    return worker.give_back()
        return self._waiting.popleft() if self._waiting else None

    def _drop(self, worker: RayWorker) -> Task | None:
        """Remove a worker and return its task, if it had one, to run it elsewhere."""
        self._workers.remove(worker)
        worker.drop()
        return worker.task

    def _environment(self) -> dict[str, str]:
        """Return environment variables that set numeric libraries' threads to a worker's CPUs.

        Values that the user has set are kept.
        """
        threads = str(max(1, int(self._wanted["CPU"])))
        return {name: os.environ.get(name, threads) for name in THREADS}

    def _capacity(self, workers: int | None) -> int:
        rooms = rooms_for(self._wanted, self._door.nodes())
        if workers is None or (self._door.local and rooms < workers):
            return rooms  # a local cluster cannot gain nodes
        return workers

    def _check_hope(self) -> None:
        """Raise PluginError if no node of the cluster has been able to run a task for too long.

        Raises:
            PluginError: no node can run a task for too long, or the cluster's head is gone.
        """
        if not self._door.head.answers():
            return
        if any(worker.node for worker in self._workers):
            self._hopeless_since = None
            return
        try:
            rooms_for(self._wanted, self._door.nodes())
        except PluginError:
            now = time.monotonic()
            self._hopeless_since = self._hopeless_since or now
            if now - self._hopeless_since > _PATIENCE_S:
                raise
        else:
            self._hopeless_since = None


def _check(workers: int | None, timeout_s: float | None, start_s: float) -> None:
    if workers is not None and workers < 1:
        raise PluginError(f"the executor 'ray' cannot have {workers} workers")
    if timeout_s is not None and timeout_s <= 0:
        raise PluginError(f"the executor 'ray' cannot end tasks after {timeout_s:g} s")
    if start_s <= 0:
        raise PluginError(f"the executor 'ray' cannot start within {start_s:g} s")


def _pickle_work(work: Work) -> bytes:
    """Return the work pickled, with the code of functions of the main script and notebooks."""
    cloudpickle = import_ray().cloudpickle
    try:
        sent: bytes = cloudpickle.dumps(work)
    except Exception as error:
        raise PluginError(
            f"the work cannot be sent to other machines: {error}",
            hint="keep open files, locks and connections out of it, or use the executor 'serial'",
        ) from error
    return sent
