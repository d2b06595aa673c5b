"""Probability that each design is on the front, given the standard errors of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dse.core.batch import Column
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Mask

MOST_DRAWS = 1_000
_LEAST_DRAWS = 100
_MOST_NUMBERS = 2_000_000
"""Largest number of losses drawn in all; many trials get fewer draws, but ``_LEAST_DRAWS``."""

_SEED = 20_091

DOUBT = (0.05, 0.95)
"""Probabilities between which it is uncertain whether a design is on the front."""


def membership(problem: Problem, trials: Sequence[Trial]) -> Mapping[int, float]:
    """Return, by trial number, the probability that each trial is on the front.

    Empty if no metric has a standard error. Monte Carlo estimate with a fixed seed and up to
    :data:`MOST_DRAWS` draws: each metric is drawn from a normal distribution with its value as the
    mean and its ``spread`` as the standard deviation, independent of all others, and the front of
    the feasible designs is computed. If the errors are correlated (common random numbers), the true
    probabilities are often closer to 0 or 1.
    """
    held, asked = Trials.of(trials), problem.asked
    if not asked & held.spread.keys():
        return {}
    known = [~np.isnan(held.metrics[name]) for name in asked if name in held.metrics]
    whole = np.all(known, axis=0) if len(known) == len(asked) else np.zeros(len(held), dtype=bool)
    done = held.take(held.are(State.DONE) & whole)
    draws = min(max(_MOST_NUMBERS // max(len(done), 1), _LEAST_DRAWS), MOST_DRAWS)
    hits = np.zeros(len(done))
    for losses, inside in _draw_samples(problem, done, draws):
        kept = np.flatnonzero(inside)
        hits[kept[nondominated(losses[kept])]] += 1
    return dict(zip(done.number.tolist(), (hits / draws).tolist(), strict=True))


def in_doubt(probabilities: Mapping[int, float]) -> dict[int, float]:
    """Return the trials whose front probability lies within :data:`DOUBT`, highest first."""
    low, high = DOUBT
    open_ = {number: p for number, p in probabilities.items() if low < p < high}
    return dict(sorted(open_.items(), key=lambda pair: (-pair[1], pair[0])))


def _draw_samples(problem: Problem, trials: Trials, draws: int) -> Iterator[tuple[Floats, Mask]]:
    """Yield, per Monte Carlo draw of the errors, all trials' losses (n, m) and feasibility (n,)."""
    rng = np.random.default_rng(_SEED)
    size = len(trials)
    columns = problem.columns(trials)
    spread = {
        name: np.nan_to_num(trials.spread.get(name, np.zeros(size)))
        for name in sorted(problem.asked)
    }
    for _ in range(draws):
        noise = {name: rng.standard_normal(size) * width for name, width in spread.items()}
        drawn = {
            **columns,
            **{name: Column(columns[name].values + noise[name]) for name in noise},
        }
        losses = problem.losses(drawn, size)
        inside: Mask = np.asarray((problem.slacks(drawn, size) >= 0).all(axis=1))
        yield losses, inside & np.isfinite(losses).all(axis=1)
