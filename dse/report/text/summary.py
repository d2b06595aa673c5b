"""Sentences that summarize the result of a study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.ties import is_tie
from dse.core.trial import Trial
from dse.report.answer import MOST_PARAMETERS, Answer
from dse.report.text.space_words import format_count
from dse.report.words import broken_text, design_text, join_list, number_text, parameter_units


def best_words(front: ParetoSet, answer: Answer) -> list[tuple[str, str]]:
    """Return the best design for each objective, and the knee, as pairs of heading and text."""
    if not answer.trials:
        return [("No answer yet", "no design has a number for each objective.")]
    if not answer.feasible:
        return [_miss(answer, place) for place in range(min(len(answer.trials), 5))]
    if len(answer.trials) == 1:
        several = len(answer.problem.objectives) > 1
        heading = "One design is best in everything" if several else "The best design"
        return [(heading, f"{_describe_trial(answer, 0)}.")]
    best = [int(np.argmin(column)) for column in front.losses.T]
    lines = [
        (f"{_superlative(objective)} {objective.name}", f"{_describe_trial(answer, place)}.")
        for objective, place in zip(answer.problem.objectives, best, strict=True)
    ]
    if front.knee is not None and len(answer.trials) > 2:
        place = front.trials.index(front.knee)
        gaps = join_list(_gap(answer, place, at, best[at]) for at in range(len(best)))
        lines.append(("A balance (the knee)", f"{_describe_trial(answer, place)}. That is {gaps}."))
    return lines


def design_words(answer: Answer, trial: Trial) -> str:
    """Return a trial's parameters as text, except those that are equal in all designs."""
    names = dict.fromkeys([*answer.shown_parameters, *(answer.varying or trial.design)])
    return design_text(trial.design, names, parameter_units(answer.problem), MOST_PARAMETERS)


def common_words(answer: Answer) -> str:
    """Return the parameter values that all designs of the result share, as text; may be empty."""
    return design_text(answer.common, answer.common, parameter_units(answer.problem))


def _describe_trial(answer: Answer, place: int) -> str:
    trial = answer.trials[place]
    pairs: Sequence[tuple[Objective, float]] = list(
        zip(answer.problem.objectives, answer.values[place].tolist(), strict=True)
    )
    values = join_list(
        f"{o.name} {number_text(value, o.unit, written=o.written)}" for o, value in pairs
    )
    return f"trial {trial.number} with {values} ({design_words(answer, trial)})"


def _miss(answer: Answer, place: int) -> tuple[str, str]:
    return broken_text(answer.problem, answer.broken[place]), f"{_describe_trial(answer, place)}."


def _superlative(objective: Objective) -> str:
    return "Lowest" if objective.goal == "minimize" else "Highest"


def _gap(answer: Answer, place: int, at: int, best: int) -> str:
    objective = answer.problem.objectives[at]
    value, ideal = float(answer.values[place, at]), float(answer.values[best, at])
    if is_tie(value, ideal):
        return f"the best {objective.name}"
    side = "above" if value > ideal else "below"
    if ideal == 0:
        return f"{objective.name} {side} the best"
    if value / ideal > 2:
        return f"{objective.name} {value / ideal:.2g} times the best"
    share = 100 * abs(value / ideal - 1)
    return f"{objective.name} {share:.{0 if share >= 10 else 1}f} % {side} the best"


def selection_words(
    found: ParetoSet,
    at: Sequence[str],
    *,
    best: Objective | None,
    value: float | None,
    proof: Proof,
) -> str:
    """Return the heading for designs selected by limits that the user added, or by one metric.

    Args:
        found: the designs; empty if no design satisfies every limit.
        at: the added limits as written.
        best: the metric or formula by which the designs are the best; ``None`` for the front.
        value: the value of ``best`` for the designs, in its unit.
        proof: the statement on exactness, as far as it covers the designs.
    """
    under = f" under {join_list(at)}" if at else ""
    if not found.trials:
        return f"no design satisfies {join_list(at) or 'every limit'}; these miss by least"
    if best is None or value is None:
        return f"{proof.front_words}{under}: {format_count(len(found.trials), 'design')}"
    number = number_text(value, best.unit, written=best.written)
    sure = f", {proof.search_words}"
    return f"{_superlative(best).lower()} {best.name}{under}: {number}{sure}"
