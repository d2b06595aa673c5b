"""How sure it is which designs are on the front, where metrics are known with an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.batch import Column
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Mask

MOST_DRAWS = 1_000
_LEAST_DRAWS = 100
_MOST_NUMBERS = 2_000_000
"""Of many trials, fewer fronts are drawn: so many losses in all, but at least a hundred fronts."""

_SEED = 20_091

DOUBT = (0.05, 0.95)
"""Between these probabilities it is in doubt whether a design is on the front."""


def membership(problem: Problem, trials: Sequence[Trial]) -> Mapping[int, float]:
    """The probability that each trial is on the front, by its number; empty without any spread.

    Each metric is drawn from a normal distribution of its value and spread, independent of all
    others, up to a thousand times with one seed; the front of a draw is that of the designs within
    the limits there. Designs that share their chances (common random numbers) are often surer
    apart than this.
    """
    asked = problem.asked
    if not any(name in trial.spread for trial in trials for name in asked):
        return {}
    done = [t for t in trials if t.state is State.DONE and asked <= t.metrics.keys()]
    draws = min(max(_MOST_NUMBERS // len(done), _LEAST_DRAWS), MOST_DRAWS)
    losses, inside = _drawn(problem, done, draws)
    hits = np.zeros(len(done))
    for place in range(draws):
        kept = np.flatnonzero(inside[place])
        hits[kept[nondominated(losses[place, kept])]] += 1
    return {trial.number: float(hit) / draws for trial, hit in zip(done, hits, strict=True)}


def in_doubt(probabilities: Mapping[int, float]) -> dict[int, float]:
    """The trials of which it is in doubt whether they are on the front, the surest first."""
    low, high = DOUBT
    open_ = {number: p for number, p in probabilities.items() if low < p < high}
    return dict(sorted(open_.items(), key=lambda pair: (-pair[1], pair[0])))


def _drawn(problem: Problem, trials: Sequence[Trial], draws: int) -> tuple[Floats, Mask]:
    """Losses (draws, n, m) and where all limits are kept (draws, n), each with its own errors."""
    rng = np.random.default_rng(_SEED)
    size = len(trials)
    columns = problem.columns(trials)
    spread = {
        name: np.array([trial.spread.get(name, 0.0) for trial in trials])
        for name in sorted(problem.asked)
    }
    losses = np.empty((draws, size, len(problem.objectives)))
    inside = np.empty((draws, size), dtype=bool)
    for place in range(draws):
        noise = {name: rng.standard_normal(size) * width for name, width in spread.items()}
        drawn = {
            **columns,
            **{name: Column(columns[name].values + noise[name]) for name in noise},
        }
        losses[place] = problem.losses(drawn, size)
        inside[place] = (problem.slacks(drawn, size) >= 0).all(axis=1)
    return losses, inside & np.isfinite(losses).all(axis=2)
