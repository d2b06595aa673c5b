"""A design that somebody thought of: judged, evaluated apart, and added to a study's record.

A trial that is added is pending and free, as those of a driver that left: whoever runs the study
next takes it up before anything is asked. The record tells no optimizer that asked for it, so
``dse verify`` counts it among what it cannot prove.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from threading import Lock

from dse.core.design import Design
from dse.core.trial import Ask, Event, Outcome, Trial
from dse.core.values import Value
from dse.errors import Overtaken, StudyError
from dse.pipeline import Readings
from dse.protocols import Executor
from dse.registry import make
from dse.schema.designs import design_of
from dse.serve.snapshot import Snapshot

EVALUATION_S = 120.0
"""What takes longer is ended: a study has no such bound, and should measure it."""

_TRIES = 5
_one_at_a_time = Lock()


def judged(snapshot: Snapshot, values: Mapping[str, Value]) -> Design:
    """The legal design of these values.

    Raises:
        DesignError: it breaks a rule of the space.
        SpecError: a quantity cannot be read.
    """
    return design_of(values, snapshot.study.problem.space)


def trial_with(snapshot: Snapshot, design: Design) -> int | None:
    """The number of the first trial that has the design; ``None`` if none has."""
    same = (n for n, one in enumerate(snapshot.trials.iter_designs()) if one == design)
    return next(same, None)


def evaluated(snapshot: Snapshot, design: Design) -> Trial:
    """The design with its outcome, found in a process of its own; nothing is stored.

    What the study measured before is not measured again.

    Raises:
        StudyError: another design is being evaluated, or the evaluators are other ones by now.
    """
    snapshot.study.check_runnable()
    if not _one_at_a_time.acquire(blocking=False):
        raise StudyError("another design is being evaluated", hint="wait until it is done")
    try:
        readings = Readings(snapshot.study.plan.pipeline)
        if snapshot.study.problem.measured:
            for trial in snapshot.finished:
                readings.learn(trial)
        trial = Trial(number=0, design=design)
        pipeline = snapshot.study.plan.pipeline
        runner: Executor = make(
            "executors", "processes", pipeline, workers=1, timeout_s=EVALUATION_S
        )
        with closing(runner):
            runner.submit(readings.task(trial))
            outcome: Outcome = runner.collect()[0]
        return trial.finished(outcome)
    finally:
        _one_at_a_time.release()


def added(snapshot: Snapshot, design: Design) -> int:
    """The number under which the design is now a pending trial of the study.

    Raises:
        StudyError: a trial has the design already, or the evaluators are other ones by now.
    """
    study = snapshot.study
    study.check_unchanged()
    number = trial_with(snapshot, design)
    if number is not None:
        raise StudyError(f"trial {number} is this design already")
    for _ in range(_TRIES):
        trials = study.storage.trials(study.name)
        fresh = trials[len(snapshot.trials) :]
        if any(one == design for one in fresh.iter_designs()):
            raise StudyError("a trial is this design already")
        told, after = int(trials.over.sum()), len(trials)
        note = Event(kind="by hand", text=f"trial {after} was added by hand", told=told)
        try:
            (trial,) = study.storage.add(
                study.name, [design], Ask(told=told, after=after, events=(note,))
            )
        except Overtaken:
            continue
        return trial.number
    raise StudyError("the study grows too fast just now", hint="try again")
