"""Preferences between a study's designs as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.trial import Trial
from dse.report.json.front_json import front_json
from dse.report.schemas.choice import ChoiceFacts
from dse.report.schemas.front_schema import FrontRow
from dse.services.studies.recorded_preferences import Preferences


def choice_json(study: str, preferences: Preferences, forgotten: Sequence[int] = ()) -> ChoiceFacts:
    """Return a user's answers, the next question and the favourite design as a JSON object.

    Args:
        study: the study's name.
        preferences: the user's preferences that the study's record holds.
        forgotten: the numbers of answers that were just withdrawn.
    """
    pair, favourite = preferences.question(), preferences.favourite
    rows = _rows(study, preferences, [favourite.trial, *(pair or ())])
    heading = front_json(study, ParetoSet.of(preferences.problem, ()), proof=Proof())
    return {
        "study": study,
        "objectives": heading["objectives"],
        "limits": heading["limits"],
        "metrics": heading["metrics"],
        "words": heading["words"],
        "parameters": heading["parameters"],
        "answers": [
            {
                "answer": one.number,
                "preferred": one.first,
                "other": one.second,
                "equal": one.equal,
                "used": one not in preferences.unused,
            }
            for one in preferences.answers
        ],
        "forgotten": list(forgotten),
        "question": rows[1:] or None,
        "sure": preferences.is_sure,
        "favourite": rows[0],
        "probability": favourite.probability,
    }


def _rows(study: str, preferences: Preferences, trials: Sequence[Trial]) -> list[FrontRow]:
    empty = ParetoSet.of(preferences.problem, ())
    shown = replace(empty, trials=tuple(trials), losses=preferences.problem.trial_losses(trials))
    return front_json(study, shown, proof=Proof())["front"]
