"""Collection of the errors that the modelled evaluators of a study state for their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.core.batch import Batch
from dse.core.trial import Trial
from dse.core.trials import column_of
from dse.evaluation.pipeline import Pipeline
from dse.protocols import ModelError, StatesModelErrors


def collect_model_errors(
    pipeline: Pipeline, trials: Sequence[Trial]
) -> Mapping[str, Sequence[ModelError]]:
    """Return the errors of modelled metrics of n finished trials, by the study's metric names.

    Only pure evaluators, which start no program, are called. Metrics that are exact, and metrics of
    evaluators that state no errors, are left out.

    Args:
        pipeline: the study's evaluators.
        trials: the trials, which have all metrics that the evaluators read.
    """
    found: dict[str, Sequence[ModelError]] = {}
    for bound in pipeline.bound if trials else ():
        if not bound.pure or not isinstance(bound.evaluator, StatesModelErrors):
            continue
        columns = {name: column_of(trials, name) for name in sorted(bound.reads)}
        batch = bound.own_inputs(Batch(columns, len(trials)))
        for own, errors in bound.evaluator.model_errors(batch).items():
            found[bound.metric(own)] = errors
    return found
