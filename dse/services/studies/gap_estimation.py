"""Gap of a study on demand: the share of the hypervolume that its front may still miss."""

from __future__ import annotations

from math import ceil

import numpy as np

from dse.core.pareto import REFERENCE_TRIALS, ParetoSet
from dse.core.recorded_gap import RecordedGap
from dse.core.trials import Trials
from dse.errors import StudyError
from dse.report.json.gap_json import known_gap
from dse.schema.models import Quantity
from dse.schema.study.budget import CONFIDENCE
from dse.schema.study.overrides import stated_budget
from dse.schema.study.plugin_checks import check_gap_space
from dse.study.gap_stopping import recorded_gap
from dse.study.run_phases import completes_front
from dse.study.study_engine import StudyEngine
from dse.system.credentials import private_environment


def estimate_gap(study: StudyEngine, confidence: Quantity | None = None) -> RecordedGap:
    """Estimate the hypervolume gap after all finished trials of a study; record nothing.

    The gap is the share of the hypervolume that the front may still miss. The result is the
    estimate that a run with ``budget: {gap: ...}`` records after the same trials.

    Args:
        study: the study; its budget need not state a gap.
        confidence: probability with which the gap is an upper bound, such as ``"95 %"``; by default
            that of the study's budget, or 90 %.

    Raises:
        SpecError: the confidence is invalid, or all metrics are modelled over a space that cannot
            be enumerated.
        StudyError: there are too few trials, or a model cannot run here.
    """
    from dse.optimizers.bayesian.hypervolume_gap import GapEstimator  # imports SciPy

    problem, finished = study.problem, study.finished
    proof = study.proof
    budget = stated_budget(
        study.plan, {"gap": study.plan.budget.gap or 0.5, "confidence": confidence}
    )
    if proof.exact and (proved := known_gap(proof, study.events)) is not None:
        return proved
    check_gap_space(budget.gap, problem)
    study.check_runnable(["modelled"])
    study.plan.pipeline.may_start = True  # models compute the modelled metrics
    share = CONFIDENCE if budget.confidence is None else budget.confidence
    with private_environment():
        found = GapEstimator(
            problem, confidence=share, completes=completes_front(study.plan)
        ).estimate(finished)
    if found is None:
        raise _unknown(study, finished, share)
    counted = problem.measurements(finished) if problem.measured else np.ones(len(finished))
    return recorded_gap(problem, found, measurements=int(counted.sum()), finished=len(finished))


def _unknown(study: StudyEngine, finished: Trials, confidence: float) -> StudyError:
    """Return the error that states why no gap can be estimated."""
    problem = study.problem
    front = ParetoSet.of(problem, finished)
    feasible = int(problem.feasible(finished).sum())
    least = ceil(round(1.0 / (1.0 - confidence), 6)) + 5
    hint = f"run it further, for at least {least} measurements at this confidence"
    if front.reference is None:
        lacking = f"{feasible} of the {REFERENCE_TRIALS} feasible trials that fix the "
        lacking += "reference point of the hypervolume have finished"
        hint = "run it further, or state 'reference' in the study"
    elif not feasible:
        lacking, hint = "no finished trial keeps all limits", "run it further, or relax a limit"
    else:
        lacking = f"{int(problem.measurements(finished).sum())} measurements are too few to "
        lacking += f"calibrate it at {100 * confidence:.4g} % confidence"
    return StudyError(f"the gap of the study {study.name!r} is not known yet: {lacking}", hint=hint)
