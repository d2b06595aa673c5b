"""Evaluation of single designs with all evaluators of a study, without storing the results."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.design import Design
from dse.core.trial import Trial
from dse.evaluation.pipeline import MeasurementCache
from dse.study.study_engine import StudyEngine
from dse.system.credentials import private_environment


def evaluate_designs(study: StudyEngine, designs: Sequence[Design]) -> list[Trial]:
    """Evaluate designs and return them as trials, numbered by their index in the argument.

    Measurements that the study has already made of a design are reused.

    Raises:
        StudyError: an evaluator cannot be run here, or has changed since the study was created.
    """
    study.check_runnable()
    pipeline = study.plan.pipeline
    readings = MeasurementCache(pipeline)
    if study.problem.measured:
        for trial in study.finished:
            readings.learn(trial)
    fresh = [Trial(number=number, design=design) for number, design in enumerate(designs)]
    with private_environment():
        outcomes = pipeline([readings.task(trial) for trial in fresh])
    return [trial.finished(outcome) for trial, outcome in zip(fresh, outcomes, strict=True)]
