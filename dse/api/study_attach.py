"""Results that a program attaches to a study, as finished trials."""

from __future__ import annotations

from collections.abc import Mapping

from dse.api.tell import ReportedResult, full_metric_name
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Value
from dse.schema.study.designs import design_of
from dse.study import study_engine as engine
from dse.study.attach import attach_results
from dse.study.import_trials import ImportedTrial


def attach_result(
    study: engine.StudyEngine, design: Mapping[str, Value], reported: ReportedResult, source: str
) -> Trial:
    """Store metrics of a design that the study did not suggest; return the trial.

    Args:
        study: the study.
        design: values by parameter.
        reported: the result: metric values with standard errors, or the reason of a failure.
        source: where the result is from, for the record.

    Raises:
        DesignError: the design is not legal.
        SpecError: a metric is unknown.
        StudyError: a trial of the design exists, or a measured metric is missing.
    """
    if reported.failure is not None:
        state = State.INFEASIBLE if reported.failure.kind == "infeasible" else State.FAILED
        outcome = Outcome(state=state, failure=reported.failure)
    else:
        outcome = Outcome(
            state=State.DONE,
            metrics={full_metric_name(study, n): value for n, value in reported.values.items()},
            spread={full_metric_name(study, n): error for n, error in reported.spread.items()},
        )
    taken = ImportedTrial(design_of(design, study.problem.space), outcome)
    return attach_results(study, [taken], source=source)[0]
