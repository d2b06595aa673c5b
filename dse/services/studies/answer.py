"""Answer of a study as one object: its front with everything that commands print of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dse.analysis.effects import Effects, estimate_effects
from dse.analysis.front_probability import membership
from dse.core.pareto import ParetoSet
from dse.report.html.fidelity import rungs, rungs_json
from dse.report.html.scenarios import contrast_json
from dse.report.json.front import front_json
from dse.report.schemas.front import Front
from dse.study.study import StudyEngine


def answer_json(study: StudyEngine) -> Front:
    """The front, what scenarios would choose, what chance makes of it, and how far rungs hold."""
    finished = study.finished
    front = ParetoSet.of(study.problem, finished)
    told = front_json(study.name, front, finished, proof=study.proof)
    contrast, chances = study.contrast, membership(study.problem, finished)
    if contrast is not None:
        told["scenarios"] = contrast_json(contrast)
    if chances:
        told["membership"] = {str(number): chance for number, chance in chances.items()}
    if study.problem.ladders:
        told["fidelities"] = rungs_json(rungs(study.problem, finished))
    return told


def study_effects(
    study: StudyEngine,
    metrics: Sequence[str] = (),
    *,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Effects]:
    """Estimate what each parameter does to some metrics or objectives.

    Args:
        study: the study.
        metrics: metrics or objectives; all that is asked without any.
        on_progress: told how many terms of how many are done.

    Raises:
        StudyError: there is no such metric, or no trial has it.
    """
    return estimate_effects(study.problem, study.finished, metrics, on_progress=on_progress)
