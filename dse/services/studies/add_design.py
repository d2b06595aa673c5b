"""Addition of a user-chosen design to a study's record, as a pending trial.

No driver (process that runs the study) owns the trial, so the next driver evaluates it before it
asks its optimizer for designs, as it does with the unfinished trials of drivers that have ended.
The record names no optimizer as the origin of the design: ``dse verify``, which repeats the
optimizer's choices, counts the trial among those that cannot be verified.
"""

from __future__ import annotations

import time

from dse.core.design import Design
from dse.core.trial import Ask, Event
from dse.core.trials import Trials
from dse.errors import Overtaken, StudyError
from dse.study.study_engine import StudyEngine

_TRIES = 5


def trial_with(trials: Trials, design: Design) -> int | None:
    """Return the number of the study's first trial of the given design; ``None`` without one."""
    same = (n for n, one in enumerate(trials.iter_designs()) if one == design)
    return next(same, None)


def add_pending_design(study: StudyEngine, design: Design, known: Trials) -> int:
    """Add a design to a study as a pending trial, and return the trial's number.

    Args:
        study: the study.
        design: a legal design of its space.
        known: the study's trials as the caller has read them; only newer trials are read from the
            storage.

    Raises:
        StudyError: a trial has the design already, the evaluators have changed, or other
            processes keep adding trials.
    """
    study.check_unchanged()
    number = trial_with(known, design)
    if number is not None:
        raise StudyError(f"trial {number} is this design already")
    for _ in range(_TRIES):
        trials = study.trials
        if any(one == design for one in trials[len(known) :].iter_designs()):
            raise StudyError("a trial is this design already")
        finished, after = int(trials.over.sum()), len(trials)
        note = Event(kind="by hand", text=f"trial {after} was added by hand", told=finished)
        try:
            ask = Ask(told=finished, after=after, events=(note,), at=time.time())
            (trial,) = study.storage.add(study.name, [design], ask)
        except Overtaken:
            continue
        return trial.number
    raise StudyError("other processes keep adding trials to the study", hint="try again")
