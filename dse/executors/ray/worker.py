"""Handle, in the driver process, of one worker on a Ray cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dse.core.metric import FailureKind
from dse.core.trial import Outcome
from dse.evaluation.reporting import Watcher
from dse.executors.failures import build_error_outcome
from dse.executors.ray.actor import BEGUN_AT, CALLS, WorkerActor
from dse.executors.worker_process import Beginning
from dse.protocols import Task

_END_S = 15.0
_LONGEST = 300
_COLOURS = re.compile(r"\x1b\[\d*m")
_OPTIONS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}


class LostError(Exception):
    """Raised for a worker that the cluster ended or lost, with its node, process or connection."""

    def __init__(self, reason: str, kind: FailureKind) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class RayWorker:
    """Handle, in the driver process, of a worker actor on the cluster.

    The handle exists from the time when the worker is requested. Its ``sign`` is an object
    reference to wait for: first the actor's placement on a node, then each outcome. While the
    cluster has no room, the reference does not become ready.

    Args:
        ray: the Ray library.
        kind: the actor class, see :func:`actor_class`.
        arguments: the arguments of :class:`~dse.executors.ray.actor.WorkerActor`.
    """

    def __init__(self, ray: Any, kind: Any, arguments: Sequence[Any]) -> None:
        self.node = ""
        self.task: Task | None = None
        self._since = time.monotonic()
        self._ray = ray
        self._actor = kind.remote(*arguments)
        self._place = self._actor.node.remote()
        self._stays = self._actor.stay.remote()
        self._outcome: Any = None
        self.report = self._actor.report.remote()

    @property
    def sign(self) -> Any:
        """Ray object reference that becomes ready next: the worker's placement, then its outcome.

        It is ``None`` while the worker is placed and idle.
        """
        return self._outcome if self.node else self._place

    @property
    def signs(self) -> list[Any]:
        """Ray object references to wait for: :attr:`sign` and the next report; empty while idle."""
        return [self.sign, self.report] if self.task is not None or not self.node else []

    @property
    def placed(self) -> bool:
        """Whether the cluster has placed the worker on a node, even if its name is unknown."""
        return bool(self.node) or self._is_there(self._place)

    @property
    def lost(self) -> bool:
        """Whether the worker was placed on a node and the cluster has lost the worker since."""
        return bool(self.node) and self._is_there(self._stays)

    @property
    def spent_s(self) -> float:
        """Time in seconds since the worker took its task or, without one, was requested."""
        return time.monotonic() - self._since

    def take(self, task: Task) -> None:
        """Submit a task to the worker; it begins as soon as the worker is placed on a node."""
        self.task = task
        self._since = time.monotonic()
        self._outcome = self._actor.perform.remote(task)

    def give_back(self) -> Task | None:
        """Take back the task of a worker that is not placed on a node yet; the worker remains."""
        task, self.task = self.task, None
        self._ray.cancel(self._outcome)
        self._outcome = None
        return task

    def hear(self, watcher: Watcher, on_begin: Beginning) -> None:
        """Forward the task's intermediate report to ``watcher``; reply whether to stop the task.

        A report that was lost with the worker is ignored.
        """
        with suppress(self._ray.exceptions.RayError):
            number, step, metrics = self._ray.get(self.report)
            if step is None:
                on_begin(number, metrics[BEGUN_AT])
            else:
                self._actor.answer.remote(stops=watcher(number, step, metrics))
        self.report = self._actor.report.remote()

    def outcome(self) -> Outcome | None:
        """Return the worker's outcome; ``None`` if only its placement on a node became known.

        Raises:
            LostError: the cluster lost the worker.
        """
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(self.sign)
        except errors.RayTaskError as error:
            if not self.node:
                raise self._lost(error) from error
            answer = build_error_outcome(error)
        except errors.RayError as error:
            raise self._lost(error) from error
        if not self.node:
            self.node = answer
            return None
        self.task, self._outcome = None, None
        outcome: Outcome = answer
        return outcome

    def leave(self) -> Any:
        """Request the end of the worker's process; return a reference to wait for its end."""
        return self._actor.end.remote()

    def drop(self) -> None:
        """Kill the actor and release its resources on the cluster."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor, no_restart=True)

    def _is_there(self, reference: Any) -> bool:
        return bool(self._ray.wait([reference], timeout=0)[0])

    def _lost(self, error: Exception) -> LostError:
        """Return the error for a Ray exception, with its message shortened to one line of text.

        Of a traceback the end is kept, of other messages the beginning.
        """
        lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
        words = " ".join(_COLOURS.sub("", " ".join(lines)).split())
        shown = words[-_LONGEST:] if "Traceback" in words or "^^^" in words else words[:_LONGEST]
        short = isinstance(error, self._ray.exceptions.OutOfMemoryError)
        return LostError(f"{self.node or 'a node'}: {shown}", "memory" if short else "lost")


def actor_class(ray: Any, wanted: Mapping[str, float]) -> Any:
    """Return the actor class of workers, each of which reserves these resources.

    Args:
        ray: the Ray library.
        wanted: the amounts that each worker reserves, by Ray's resource names.
    """
    return ray.remote(WorkerActor).options(
        **_options(wanted),
        scheduling_strategy="SPREAD",
        max_concurrency=CALLS,
        max_restarts=0,
        max_task_retries=0,
    )


def end_workers(ray: Any, workers: Sequence[RayWorker]) -> None:
    """End all workers and their processes; workers that do not respond in time are killed."""
    with suppress(ray.exceptions.RayError):
        leaving = [worker.leave() for worker in workers if worker.placed]
        if leaving:
            ray.wait(leaving, num_returns=len(leaving), timeout=_END_S)
    for worker in workers:
        worker.drop()


def _options(wanted: Mapping[str, float]) -> dict[str, Any]:
    """Return resource amounts as options of a Ray actor; memory as an integer number of bytes."""
    own = {_OPTIONS[name]: amount for name, amount in wanted.items() if name in _OPTIONS}
    own |= {"memory": int(own["memory"])} if "memory" in own else {}
    custom = {name: amount for name, amount in wanted.items() if name not in _OPTIONS}
    return {**own, "resources": custom}
