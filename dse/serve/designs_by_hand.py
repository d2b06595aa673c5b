"""Designs entered by users: check of their legality, and evaluation outside of the study."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from threading import Lock

from dse.core.design import Design
from dse.core.trial import Outcome, Trial
from dse.core.values import Value
from dse.errors import StudyError
from dse.evaluation.pipeline import MeasurementCache
from dse.protocols import Executor
from dse.registry import make
from dse.schema.study.designs import design_of
from dse.serve.snapshot import Snapshot

EVALUATION_S = 120.0
"""Time limit of an evaluation in seconds; a longer one belongs in a study, which has no limit."""

_one_at_a_time = Lock()


def find_legal_design(snapshot: Snapshot, values: Mapping[str, Value]) -> Design:
    """Return the legal design with these values; quantities may be texts with a unit.

    Raises:
        DesignError: it breaks a rule of the space.
        SpecError: a quantity cannot be read.
    """
    return design_of(values, snapshot.study.problem.space)


def evaluate_separately(snapshot: Snapshot, design: Design) -> Trial:
    """Evaluate a design in a separate process and return the result as a trial.

    Nothing is stored. Measurements that the study already has are reused.

    Raises:
        StudyError: another design is being evaluated, or the evaluators have changed.
    """
    snapshot.study.check_runnable()
    if not _one_at_a_time.acquire(blocking=False):
        raise StudyError("another design is being evaluated", hint="wait until it is done")
    try:
        readings = MeasurementCache(snapshot.study.plan.pipeline)
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
