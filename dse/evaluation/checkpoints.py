"""A folder of each trial, where its evaluation keeps what it has so far, over all its attempts.

It lies under ``$DSE_TRIAL_ROOT``, else under ``dse-engine/trials`` in ``$XDG_STATE_HOME`` or
``~/.local/state``, and is gone when the trial's outcome is stored, unless ``$DSE_TRIAL_KEEP`` is
set. Its name is a hash: no text of a study file or of a stranger names a folder here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dse.core.metric import Fault
from dse.core.trial import Outcome, State, Trial
from dse.protocols import Task

ROOT_VARIABLE = "DSE_TRIAL_ROOT"
KEEP_VARIABLE = "DSE_TRIAL_KEEP"

_FILES = "files"
"""Of the evaluators in a trial's folder, each by the place that it has in the study."""

_OUTCOME = "outcome.json"
"""What became of an evaluation that has ended, until it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentTrial:
    """The trial for which an evaluator runs.

    ``number`` is its number in the study, ``attempt`` how often it was given up before: 0 the
    first time.
    """

    number: int
    attempt: int
    path: Path

    @property
    def folder(self) -> Path:
        """A folder for this evaluator of this trial alone, which stays over all attempts.

        Raises:
            OSError: it cannot be made.
        """
        _make_private(self.path)
        return self.path


_current: ContextVar[CurrentTrial | None] = ContextVar("dse_current_trial", default=None)


def current_trial() -> CurrentTrial | None:
    """Return the trial for which the calling evaluator runs, with a folder for checkpoints.

    ``None`` where there is none: outside of a study's run, as in ``dse evaluate``, and in models,
    which are called for many designs at once. Call it from the thread that the evaluator was
    called in.
    """
    return _current.get()


@contextmanager
def evaluating(task: Task, place: int) -> Iterator[None]:
    """Make the trial known to the code that is called inside the block.

    Args:
        task: of the trial.
        place: of the evaluator among those of the study.
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
    """Return the folder in which all trials on this machine have theirs.

    Raises:
        RuntimeError: no variable names one, and the user has no home.

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
    """The folders of a study's trials, as its driver sees them.

    Args:
        study: its name.
        used: something is measured; else no trial has a folder.
    """

    def __init__(self, study: str, *, used: bool) -> None:
        self._study = study
        self._used = used and _has_root()
        self._again: set[int] = set()

    def prepare(self, task: Task, trial: Trial) -> Task:
        """Return the task with what an evaluator may know of its trial, and with its folder."""
        folder = folder_of(self._study, trial) if self._used else ""
        again = trial.number in self._again
        self._again.discard(trial.number)
        return replace(task, attempt=trial.attempts, folder=folder, again=again)

    def renew(self, numbers: Iterable[int]) -> None:
        """Let these trials be evaluated again, although their last evaluations have ended."""
        self._again.update(numbers)

    def forget(self, finished: Iterable[Trial]) -> None:
        """Remove the folders of trials whose outcomes are stored."""
        if self._used and not os.environ.get(KEEP_VARIABLE):
            for trial in finished:
                shutil.rmtree(folder_of(self._study, trial), ignore_errors=True)

    def sweep(self, finished: Iterable[Trial]) -> None:
        """Remove what finished trials have left because a driver was killed before it could."""
        if not self._used:
            return
        try:
            left = {entry.name for entry in os.scandir(root())}
        except OSError:
            return
        if left:  # a name costs a hash: for the trials of this study only where there is any
            found = [t for t in finished if Path(folder_of(self._study, t)).name in left]
            self.forget(found)


def _has_root() -> bool:
    """Return whether there is a place for folders: a user of a container may have no home."""
    try:
        root()
    except RuntimeError:
        return False
    return True


def folder_of(study: str, trial: Trial) -> str:
    """Return the path of a trial's folder; trials of two studies never share one.

    The time at which it was asked tells a study from one of the same name that was deleted.
    """
    words = json.dumps([study, trial.number, trial.design.key, trial.asked_at])
    return str(root() / hashlib.sha256(words.encode()).hexdigest()[:32])


def keep_outcome(task: Task, outcome: Outcome) -> None:
    """Keep an outcome in the trial's folder: an evaluation that has ended is not made again.

    What was lost has not ended, and what costs no measurement is found again for nothing. Where
    the folder cannot be written, nothing is kept.
    """
    if not task.folder or not outcome.measured or is_lost(outcome):
        return
    told = {
        "state": outcome.state.value,
        "metrics": dict(outcome.metrics),
        "spread": dict(outcome.spread),
        "fault": outcome.fault and [outcome.fault.kind, outcome.fault.reason],
        "cost_s": outcome.cost_s,
        "measured": outcome.measured,
    }
    path = Path(task.folder) / _OUTCOME
    with suppress(OSError):
        _make_private(path.parent)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(told))
        part.replace(path)  # whole, or not there


def forget_outcome(study: str, trial: Trial) -> None:
    """Remove the outcome that is kept in a trial's folder: the trial is to be evaluated again."""
    with suppress(OSError):
        (Path(folder_of(study, trial)) / _OUTCOME).unlink()


def _make_private(folder: Path) -> None:
    """Make a folder and those above it, as far as they are missing, for this user alone."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def is_lost(outcome: Outcome) -> bool:
    """Return whether an evaluation came to no end of its own."""
    return outcome.fault is not None and outcome.fault.kind == "lost"


def kept_outcome(task: Task) -> Outcome | None:
    """Return the outcome that :func:`keep_outcome` kept; ``None`` where there is none.

    That of a task that is to be evaluated ``again`` is removed.
    """
    if not task.folder:
        return None
    path = Path(task.folder) / _OUTCOME
    try:
        if task.again:
            path.unlink()
            return None
        told: dict[str, Any] = json.loads(path.read_text())
        fault = told.pop("fault")
        state = State(told.pop("state"))
        if fault is not None:
            fault = Fault(kind=fault[0], reason=fault[1])
        return Outcome(**told, state=state, fault=fault)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None
