"""A design that somebody thought of, added to a study's record as a pending trial.

The trial is free, as those of a driver that left: whoever runs the study next takes it up before
anything is asked. The record tells no optimizer that asked for it, so ``dse verify`` counts it
among what it cannot prove.
"""

from __future__ import annotations

import time

from dse.core.design import Design
from dse.core.trial import Ask, Event
from dse.core.trials import Trials
from dse.errors import Overtaken, StudyError
from dse.study.study import StudyEngine

_TRIES = 5


def trial_with(trials: Trials, design: Design) -> int | None:
    """The number of the first trial that has the design; ``None`` if none has."""
    same = (n for n, one in enumerate(trials.iter_designs()) if one == design)
    return next(same, None)


def add_pending_design(study: StudyEngine, design: Design, known: Trials) -> int:
    """Add the design as a pending trial of the study and return its number.

    Args:
        study: the study.
        design: a legal design of its space.
        known: its trials as they were read last; only newer ones are read.

    Raises:
        StudyError: a trial has the design already, or the evaluators are other ones by now.
    """
    study.check_unchanged()
    number = trial_with(known, design)
    if number is not None:
        raise StudyError(f"trial {number} is this design already")
    for _ in range(_TRIES):
        trials = study.trials
        if any(one == design for one in trials[len(known) :].iter_designs()):
            raise StudyError("a trial is this design already")
        told, after = int(trials.over.sum()), len(trials)
        note = Event(kind="by hand", text=f"trial {after} was added by hand", told=told)
        try:
            ask = Ask(told=told, after=after, events=(note,), at=time.time())
            (trial,) = study.storage.add(study.name, [design], ask)
        except Overtaken:
            continue
        return trial.number
    raise StudyError("the study grows too fast just now", hint="try again")
