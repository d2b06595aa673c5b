"""The driver's side of one worker on a Ray cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dse.core.metric import FaultKind
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
    """The cluster lost a worker: its node, its process, or the way to it; or ended it."""

    def __init__(self, reason: str, kind: FaultKind) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class RayWorker:
    """A seat on the cluster, from the moment it is wished for.

    It is waited for by its ``sign``: first until it has a place on a node, then for each outcome.
    Where the cluster has no room yet, the sign just does not come.

    Args:
        ray: the library.
        kind: of seats, see :func:`seats`.
        arguments: of the :class:`~dse.executors.ray.actor.WorkerActor`.
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
        """Reference to wait for: its place, then its outcome; ``None`` while it is idle."""
        return self._outcome if self.node else self._place

    @property
    def signs(self) -> list[Any]:
        """The sign, and the next report of its task."""
        return [self.sign, self.report] if self.task is not None or not self.node else []

    @property
    def placed(self) -> bool:
        """True if it has a place, even one not looked up yet."""
        return bool(self.node) or self._is_there(self._place)

    @property
    def lost(self) -> bool:
        """True if it had a place, and the cluster is known to have lost it."""
        return bool(self.node) and self._is_there(self._stays)

    @property
    def spent_s(self) -> float:
        """Time since it took its task, or was wished for."""
        return time.monotonic() - self._since

    def take(self, task: Task) -> None:
        """Begin a task, as soon as it has a place."""
        self.task = task
        self._since = time.monotonic()
        self._outcome = self._actor.perform.remote(task)

    def give_back(self) -> Task | None:
        """The task that it has no place for yet; it may take another when it has."""
        task, self.task = self.task, None
        self._ray.cancel(self._outcome)
        self._outcome = None
        return task

    def hear(self, watcher: Watcher, on_begin: Beginning) -> None:
        """Forward the report that came, and the decision back; a lost report means continue."""
        with suppress(self._ray.exceptions.RayError):
            number, step, metrics = self._ray.get(self.report)
            if step is None:
                on_begin(number, metrics[BEGUN_AT])
            else:
                self._actor.answer.remote(stops=watcher(number, step, metrics))
        self.report = self._actor.report.remote()

    def outcome(self) -> Outcome | None:
        """Return the outcome that the sign brought; ``None`` where it brought only the place.

        Raises:
            LostError: the cluster lost it.
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
        """Ask the worker to end its task; return a reference that is ready when it has."""
        return self._actor.end.remote()

    def drop(self) -> None:
        """Give the seat back to the cluster."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor, no_restart=True)

    def _is_there(self, reference: Any) -> bool:
        return bool(self._ray.wait([reference], timeout=0)[0])

    def _lost(self, error: Exception) -> LostError:
        """Ray's words in one line: the last ones of a traceback, else the first ones."""
        lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
        words = " ".join(_COLOURS.sub("", " ".join(lines)).split())
        shown = words[-_LONGEST:] if "Traceback" in words or "^^^" in words else words[:_LONGEST]
        short = isinstance(error, self._ray.exceptions.OutOfMemoryError)
        return LostError(f"{self.node or 'a node'}: {shown}", "memory" if short else "lost")


def seats(ray: Any, wanted: Mapping[str, float]) -> Any:
    """Return an actor class of seats with these resources, registered with the cluster once.

    Args:
        ray: the library.
        wanted: by Ray's names, what each keeps for itself.
    """
    return ray.remote(WorkerActor).options(
        **_options(wanted),
        scheduling_strategy="SPREAD",
        max_concurrency=CALLS,
        max_restarts=0,
        max_task_retries=0,
    )


def end_workers(ray: Any, workers: Sequence[RayWorker]) -> None:
    """End all workers and what they started; those that do not answer are just dropped."""
    with suppress(ray.exceptions.RayError):
        told = [worker.leave() for worker in workers if worker.placed]
        if told:
            ray.wait(told, num_returns=len(told), timeout=_END_S)
    for worker in workers:
        worker.drop()


def _options(wanted: Mapping[str, float]) -> dict[str, Any]:
    """Return the wanted amounts as Ray's options; memory in whole bytes."""
    own = {_OPTIONS[name]: amount for name, amount in wanted.items() if name in _OPTIONS}
    own |= {"memory": int(own["memory"])} if "memory" in own else {}
    custom = {name: amount for name, amount in wanted.items() if name not in _OPTIONS}
    return {**own, "resources": custom}
