"""Report of a study as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from dse.analysis.effects import estimate_effects
from dse.analysis.error_intervals import find_intervals
from dse.analysis.importance import importances
from dse.analysis.runner_up import duels
from dse.core.pareto import ParetoSet
from dse.core.trial import Event
from dse.core.trials import Trials
from dse.evaluation.stated_errors import collect_model_errors
from dse.report.html.study_page import ReportSections, report_html
from dse.report.schemas.reproduction import JudgedStudy
from dse.schema.study.plugin_checks import optimizer_traits
from dse.services.studies.anonymize import names_of
from dse.services.studies.assumption_sensitivity import stored_turns
from dse.services.studies.claim_evaluation import claims_json, judged_claims
from dse.study.study_engine import StudyEngine


def report_text(study: StudyEngine) -> str:
    """Return the report of a study in its present state, as HTML."""
    finished = study.finished
    return report_of(study, ParetoSet.of(study.problem, finished), finished, study.events)


def report_of(
    study: StudyEngine, front: ParetoSet, finished: Trials, events: Sequence[Event]
) -> str:
    """Return the report of a study whose record has been read already, as HTML.

    Args:
        study: the study.
        front: the front of its finished trials.
        finished: its finished trials.
        events: its recorded events.
    """
    factorial = optimizer_traits(study.plan.optimizer, study.plan.objects).designed_experiment
    names = names_of(study)
    return report_html(
        study.name,
        names.text(study.plan.question),
        front,
        names.failures(finished),
        names.events(events),
        study.provenance,
        ReportSections(
            contrast=study.contrast,
            effects=estimate_effects(study.problem, finished) if factorial else [],
            duels=duels(front, finished),
            importances=importances(study.problem, finished),
            claims=_claims(study) if study.plan.claims else None,
            intervals=find_intervals(
                study.problem, front.trials, collect_model_errors(study.plan.pipeline, front.trials)
            ),
        ),
    )


def _claims(study: StudyEngine) -> JudgedStudy:
    judged = stored_turns(study, judged_claims(study))
    return claims_json(study.plan.path, judged, study.plan)
