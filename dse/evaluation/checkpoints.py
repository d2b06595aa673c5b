"""Checkpoint folder of each trial, which persists over all attempts to evaluate the trial.

The folder is created under ``$DSE_TRIAL_ROOT``, else under ``dse-engine/trials`` in
``$XDG_STATE_HOME`` or ``~/.local/state``, and removed when the trial's outcome is stored, unless
``$DSE_TRIAL_KEEP`` is set. Its name is a hash, so that no string from a user becomes a path.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dse.core.metric import Failure, FailureKind
from dse.core.trial import Attempt, Outcome, State, Trial
from dse.protocols import Task

ROOT_VARIABLE = "DSE_TRIAL_ROOT"
KEEP_VARIABLE = "DSE_TRIAL_KEEP"

_FILES = "files"
"""Subfolder with one folder per evaluator, named by the evaluator's index in the study."""

_OUTCOME = "outcome.json"
"""File with the outcome of a finished evaluation, until the outcome is in the storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentTrial:
    """Trial that an evaluator is currently evaluating, with a folder for its checkpoints.

    ``number`` is the number of the trial in the study, ``attempt`` the count of its earlier
    attempts: 0 in the first one.
    """

    number: int
    attempt: int
    path: Path

    @property
    def folder(self) -> Path:
        """Checkpoint folder of the evaluator and trial, created on access and kept over attempts.

        Raises:
            OSError: it cannot be created.
        """
        _make_private(self.path)
        return self.path


_current: ContextVar[CurrentTrial | None] = ContextVar("dse_current_trial", default=None)


def current_trial() -> CurrentTrial | None:
    """Return the trial that the calling evaluator evaluates, with a folder for checkpoints.

    The result is ``None`` outside of a study's run, as in ``dse evaluate``, and in modelled
    evaluators, which are called for many designs at once. Call the function from the thread in
    which the evaluator was called.
    """
    return _current.get()


@contextmanager
def evaluating(task: Task, place: int) -> Iterator[None]:
    """Set the trial that :func:`current_trial` returns inside the block.

    Args:
        task: the evaluation task of the trial.
        place: the index of the evaluator among the evaluators of the study.
    """
    if not task.folder:
        yield
        return
    path = Path(task.folder) / _FILES / str(place)
    token = _current.set(CurrentTrial(number=task.number, attempt=task.attempt, path=path))
    try:
        yield
    finally:
        _current.reset(token)


def root() -> Path:
    """Return the folder of this machine that holds all checkpoint folders of trials.

    Raises:
        RuntimeError: no environment variable names it, and the user has no home directory.

    Source:
        XDG Base Directory Specification 0.8: a path that is not absolute is to be ignored.
    """
    chosen = os.environ.get(ROOT_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    states = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = states if states.is_absolute() else Path.home() / ".local" / "state"
    return base / "dse-engine" / "trials"


class TrialFolders:
    """Checkpoint folders of a study's trials, managed by the process that runs the trials.

    Args:
        study: the study's name.
        used: whether the study has a measured evaluator; otherwise no trial has a folder.
    """

    def __init__(self, study: str, *, used: bool) -> None:
        self._study = study
        self._used = used and _has_root()
        self._again: set[int] = set()
        self._retired: list[Trial] = []

    def prepare(self, task: Task, trial: Trial) -> Task:
        """Return the task with its trial's attempt number, checkpoint folder and ``again`` flag.

        The flag requests an evaluation even if an outcome of the trial is saved in the folder.
        """
        folder = folder_of(self._study, trial) if self._used else ""
        again = trial.number in self._again
        self._again.discard(trial.number)
        return replace(task, attempt=trial.attempts, folder=folder, again=again)

    def renew(self, numbers: Iterable[int]) -> None:
        """Request a new evaluation of trials, even if outcomes are saved in their folders.

        The trials are given by number.
        """
        self._again.update(numbers)

    def forget(self, finished: Iterable[Trial]) -> None:
        """Remove the folders of trials whose outcomes are stored."""
        if self._used and not os.environ.get(KEEP_VARIABLE):
            for trial in finished:
                shutil.rmtree(folder_of(self._study, trial), ignore_errors=True)

    def retire(self, finished: Iterable[Trial]) -> None:
        """Note trials whose outcomes are stored; :meth:`remove_retired` removes their folders."""
        self._retired += finished

    def remove_retired(self) -> None:
        """Remove the checkpoint folders of trials whose outcomes are stored.

        The loop calls this while the next evaluation runs, because removal may wait for the disk.
        """
        self.forget(self._retired)
        self._retired.clear()

    def sweep(self, finished: Iterable[Trial]) -> None:
        """Remove folders of finished trials that were left behind when a process was killed."""
        if not self._used:
            return
        try:
            left = {entry.name for entry in os.scandir(root())}
        except OSError:
            return
        if left:  # hash the trials of this study only if there are any folders
            found = [t for t in finished if Path(folder_of(self._study, t)).name in left]
            self.forget(found)


def _has_root() -> bool:
    """Return whether a root for trial folders is known; a user may have no home directory."""
    try:
        root()
    except RuntimeError:
        return False
    return True


def folder_of(study: str, trial: Trial) -> str:
    """Return the path of a trial's checkpoint folder, unique over all studies.

    Its name is a hash that includes the time at which the trial was suggested, so that a study
    differs from a deleted one of the same name.
    """
    words = json.dumps([study, trial.number, trial.design.key, trial.asked_at])
    return str(root() / hashlib.sha256(words.encode()).hexdigest()[:32])


def keep_outcome(task: Task, outcome: Outcome) -> None:
    """Save an outcome in the trial's folder, so that a finished evaluation is not repeated.

    Lost evaluations are not saved, because they are not finished, nor are outcomes without a
    measurement, which cost nothing to repeat. If the folder cannot be written, nothing is saved.
    """
    if not task.folder or not outcome.measured or is_lost(outcome):
        return
    record = {
        "state": outcome.state.value,
        "metrics": dict(outcome.metrics),
        "spread": dict(outcome.spread),
        "fault": outcome.failure and [outcome.failure.kind, outcome.failure.reason],
        "cost_s": outcome.cost_s,
        "measured": outcome.measured,
    }
    path = Path(task.folder) / _OUTCOME
    with suppress(OSError):
        _make_private(path.parent)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(record))
        part.replace(path)  # atomic: a reader sees the complete file or none


def forget_outcome(study: str, trial: Trial) -> None:
    """Delete the outcome saved in a trial's folder, so that the trial is evaluated again."""
    with suppress(OSError):
        (Path(folder_of(study, trial)) / _OUTCOME).unlink()


def _make_private(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to this user only."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def is_lost(outcome: Outcome) -> bool:
    """Return whether an evaluation was lost: ended from outside its process, without a result."""
    return outcome.failure is not None and outcome.failure.kind == "lost"


def kept_outcome(task: Task) -> Outcome | None:
    """Return the outcome saved in the task's folder by :func:`keep_outcome`, or ``None``.

    If the task is marked to be evaluated ``again``, the saved outcome is deleted instead.
    """
    if not task.folder:
        return None
    path = Path(task.folder) / _OUTCOME
    try:
        if task.again:
            path.unlink()
            return None
        record: dict[str, Any] = json.loads(path.read_text())
        failure = record.pop("fault")
        state = State(record.pop("state"))
        if failure is not None:
            failure = Failure(kind=failure[0], reason=failure[1])
        return Outcome(**record, state=state, failure=failure)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


RETRIES: Mapping[FailureKind, int] = {"lost": 3, "memory": 1}
"""Default number of retries by kind of failure.

A lost machine is rarely caused by the design, but after four losses the design itself is suspect
and its trial is failed. Memory may have run out because of other processes; this is retried only
once, because the retry may in turn starve others.
"""


def again(
    failure: Failure | None,
    attempts: list[Attempt],
    number: int,
    retries: Mapping[FailureKind, int],
) -> bool:
    """Return whether a failed trial is to be evaluated again.

    Args:
        failure: why the trial failed; ``None`` if it has metrics.
        attempts: the abandoned attempts at all trials of the study.
        number: the trial's number.
        retries: the maximum number of retries by kind of failure; 0 for a missing kind.
    """
    if failure is None or failure.kind == "infeasible":
        return False
    before = [a for a in attempts if a.number == number and a.failure is not None]
    same = sum(a.failure.kind == failure.kind for a in before if a.failure is not None)
    return same < retries.get(failure.kind, 0)
