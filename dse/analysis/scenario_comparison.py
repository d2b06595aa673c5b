"""Comparison of scenarios: the best design under each, and the regret of the overall best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.metric import Goal
from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """One objective under one scenario: its best trial, and the value of the study's best trial.

    ``chosen_value`` is the value, under this scenario, of the trial that is best over all
    scenarios. ``behind`` is how much worse ``chosen_value`` is than the best value under this
    scenario, as a fraction of the best value; ``None`` if that trial is infeasible under the
    scenario, or the best value is zero.
    """

    scenario: str
    winner: int
    value: float
    chosen_value: float | None
    behind: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One objective that depends on the scenario, with its best trial under each scenario.

    ``chosen`` is the number of the trial with the best value of the study's objective, over all
    scenarios.
    """

    text: str
    goal: Goal
    unit: str
    chosen: int | None
    standings: tuple[ScenarioResult, ...]

    @property
    def winners(self) -> tuple[int, ...]:
        """Numbers of the trials that are best under some scenario, each once."""
        return tuple(dict.fromkeys(one.winner for one in self.standings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Comparison of scenarios: best trial per objective, and the front under each scenario alone.

    ``fronts`` holds the numbers of the trials on the front, by scenario.
    """

    weights: Mapping[str, float]
    contests: tuple[Contest, ...]
    fronts: Mapping[str, tuple[int, ...]]

    @property
    def everywhere(self) -> tuple[int, ...]:
        """Numbers of the trials that are on the front under every scenario."""
        fronts = [set(front) for front in self.fronts.values()]
        return tuple(sorted(set.intersection(*fronts))) if fronts else ()


def contrast(
    problem: Problem,
    under: Mapping[str, Problem],
    weights: Mapping[str, float],
    trials: Sequence[Trial],
) -> Contrast:
    """Compare the best trials and the fronts under each scenario alone with those of the study.

    Args:
        problem: the study's problem, over all scenarios.
        under: the problem under each scenario alone, by scenario.
        weights: weight of each scenario.
        trials: the finished trials.
    """
    contests = [
        _contest(problem, under, trials, place)
        for place, objective in enumerate(problem.objectives)
        if any(one.objectives[place].expression != objective.expression for one in under.values())
    ]
    return Contrast(
        weights=weights,
        contests=tuple(contests),
        fronts={
            name: tuple(sorted(trial.number for trial in ParetoSet.of(one, trials).trials))
            for name, one in under.items()
        },
    )


def _contest(
    problem: Problem, under: Mapping[str, Problem], trials: Sequence[Trial], place: int
) -> Contest:
    own = problem.objectives[place]
    chosen = _best(_losses(problem, trials, place))
    found = {name: _losses(one, trials, place) for name, one in under.items()}
    standings = (_standing(name, own, losses, trials, chosen) for name, losses in found.items())
    return Contest(
        text=own.text,
        goal=own.goal,
        unit=own.unit,
        chosen=None if chosen is None else trials[chosen].number,
        standings=tuple(one for one in standings if one is not None),
    )


def _standing(
    scenario: str,
    objective: Objective,
    losses: Floats,  # (n,), infinite where a trial is infeasible
    trials: Sequence[Trial],
    chosen: int | None,
) -> ScenarioResult | None:
    best = _best(losses)
    if best is None:
        return None
    there = None if chosen is None or np.isinf(losses[chosen]) else float(losses[chosen])
    least = float(losses[best])
    return ScenarioResult(
        scenario=scenario,
        winner=trials[best].number,
        value=objective.sign * least,
        chosen_value=None if there is None else objective.sign * there,
        behind=None if there is None or least == 0 else (there - least) / abs(least),
    )


def _losses(problem: Problem, trials: Sequence[Trial], place: int) -> Floats:
    """Return one objective of every trial as a loss, (n,); infinite for infeasible trials."""
    return np.where(problem.feasible(trials), problem.trial_losses(trials)[:, place], np.inf)


def _best(losses: Floats) -> int | None:
    return int(np.argmin(losses)) if np.isfinite(losses).any() else None
