"""Subset of the trials that a surrogate is trained on, if all of them would cost too much."""

from __future__ import annotations

from collections.abc import Sequence

import moocore
import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial

MOST = 300
"""Most trials that a Gaussian process is trained on, as its cost grows with their cube."""

_FIRST = 32
_BEST = 200


def select_trials(problem: Problem, trials: Sequence[Trial], most: int = MOST) -> list[Trial]:
    """Return the trials to train on: all, or a subset of ``most`` if there are more.

    The subset is the first trials, the best fronts and an evenly spaced sample of the rest. The
    first trials define the reference point. The best fronts act as a trust region: the next design
    should join them, so the model need not be accurate far from them. Infeasible trials and trials
    without metrics belong to the rest.

    Args:
        problem: problem that the trials belong to.
        trials: finished trials.
        most: most trials of the subset; two thirds are the best, a ninth are the first.
    """
    if len(trials) <= most:
        return list(trials)
    first, best = _FIRST * most // MOST, _BEST * most // MOST
    losses = problem.trial_losses(trials)
    rows = np.flatnonzero(problem.feasible(trials))
    ranks = np.full(len(trials), len(trials))
    if len(rows):
        ranks[rows] = moocore.pareto_rank(losses[rows])
    ranks[:first] = -1
    order = np.argsort(ranks, kind="stable")
    rest = np.sort(order[first + best :])
    some = rest[np.linspace(0, len(rest) - 1, most - first - best).round().astype(int)]
    return [trials[row] for row in np.sort(np.concatenate([order[: first + best], some]))]
