"""Results of a study as JSON: Pareto front, winners per scenario, and parameter effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dse.analysis.effects import Effects, estimate_effects
from dse.analysis.error_intervals import find_intervals
from dse.analysis.front_probability import membership
from dse.analysis.judged_front import judge_front
from dse.core.judged_trials import read_judged
from dse.core.pareto import ParetoSet
from dse.core.trial import Event
from dse.evaluation.pipeline import Pipeline
from dse.evaluation.stated_errors import collect_model_errors
from dse.report.html.fidelity import rungs, rungs_json
from dse.report.html.scenario_tables import contrast_json
from dse.report.json.front_json import finite, front_json, objectives_json
from dse.report.json.gap_json import gap_json, known_gap
from dse.report.schemas.front_schema import FrontFacts
from dse.report.text.interval_table import interval_facts
from dse.report.text.judged_table import judged_facts
from dse.services.studies.best_designs import BestDesigns
from dse.study.study_engine import StudyEngine


def answer_json(study: StudyEngine) -> FrontFacts:
    """Return the Pareto front of a study as JSON, with further analyses where they apply.

    The analyses are: the best trials under each scenario; the probability that each trial is on the
    true front, given the noise of the measurements; and how well low fidelities agree with high
    ones.
    """
    finished = study.finished
    front = ParetoSet.of(study.problem, finished)
    facts = front_json(study.name, front, finished, proof=study.proof)
    add_judged(facts, front, study.events)
    add_intervals(facts, front, study.plan.pipeline)
    facts["gap"] = gap_json(known_gap(study.proof, study.events))
    contrast, chances = study.contrast, membership(study.problem, finished)
    if contrast is not None:
        facts["scenarios"] = contrast_json(contrast)
    if chances:
        facts["membership"] = {str(number): chance for number, chance in chances.items()}
    if study.problem.ladders:
        facts["fidelities"] = rungs_json(rungs(study.problem, finished))
    return facts


def add_judged(facts: FrontFacts, front: ParetoSet, events: Sequence[Event]) -> None:
    """Add the results on the test split to each design of a front as JSON, if there are any.

    Args:
        facts: the front as JSON.
        front: the front.
        events: the events of the study's record.
    """
    judged = judge_front(front.problem, front.trials, read_judged(events))
    if judged is not None:
        for row in facts["front"]:
            row["test"] = judged_facts(judged, row["trial"])


def add_intervals(facts: FrontFacts, front: ParetoSet, pipeline: Pipeline) -> None:
    """Add the errors of modelled objectives to each design of a front as JSON, if any are stated.

    Args:
        facts: the front as JSON.
        front: the front.
        pipeline: the study's evaluators.
    """
    errors = collect_model_errors(pipeline, front.trials)
    found = find_intervals(front.problem, front.trials, errors)
    if found is not None:
        for row in facts["front"]:
            row["model_error"] = interval_facts(found, row["trial"])


def best_designs_json(study: str, chosen: BestDesigns) -> FrontFacts:
    """Return the designs that satisfy further limits, or the best by one metric, as JSON.

    Args:
        study: the study's name.
        chosen: the selection.
    """
    facts = front_json(study, chosen.found, chosen.trials, proof=chosen.proof)
    facts["at"] = list(chosen.at)
    facts["best"] = None if chosen.best is None else objectives_json([chosen.best])[0]
    facts["best_value"] = finite(chosen.value)
    return facts


def study_effects(
    study: StudyEngine,
    metrics: Sequence[str] = (),
    *,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Effects]:
    """Estimate the effect of each parameter on some metrics or objectives.

    Args:
        study: the study.
        metrics: names of metrics or objectives; by default, those that the study's problem uses.
        on_progress: called with the number of effects estimated so far, and their total number.

    Raises:
        StudyError: there is no such metric, or fewer than two trials have it.
    """
    return estimate_effects(study.problem, study.finished, metrics, on_progress=on_progress)
