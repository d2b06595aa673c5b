"""Search for the legal design with the highest acquisition value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from dse.core.design import Design
from dse.core.encoding import encoded
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.optimizers.bayesian.candidates import around, candidates
from dse.optimizers.bayesian.training_data import TrainingData

_SCREENED = 96
"""Candidates that pass the cheap screening and get an exact acquisition value."""
_CLIMBERS = 4
_CLIMBS = 2
_DARTS = 1_024
_OPTIMISM = 1.0
"""Standard deviations by which a prediction is assumed to be better than its mean."""


class Search:
    """Search for the designs with the highest acquisition values in a pool of candidates.

    A cheap estimate ranks the pool; the acquisition function is then evaluated on the best few
    candidates and, repeatedly, on the legal neighbours of the best ones. A batch is chosen
    greedily: the gain of each design takes pending and already chosen designs into account.
    """

    def __init__(
        self,
        problem: Problem,
        trials: Sequence[Trial],
        data: TrainingData,
        *,
        surrogate: Any,  # a gaussian.Surrogate, whose type would import torch
        taken: Collection[Design],
        pending: Sequence[Design],
        rng: np.random.Generator,
    ) -> None:
        self._problem = problem
        self._rng = rng
        self._pending = list(pending)
        self._taken = {*taken, *pending}
        self._acquisition = surrogate.acquisition(rng)
        best = [trials[place].design for place in data.elite]
        pool = candidates(problem, best, self._taken, rng)
        self.worth = -np.inf
        """Log acquisition value of the design that was returned last."""
        self._few: list[Design] = []
        if pool:
            means, deviations = surrogate.moments(self._points(pool))
            guess = estimate_gains(data, means, deviations, rng)
            order = np.argsort(-guess, kind="stable")[:_SCREENED]
            self._few = [pool[place] for place in order]

    def next(self) -> list[Design]:
        """Return the candidate of highest acquisition value as a list; empty if none is left."""
        if not self._few:
            return []
        self._acquisition.wait_for(self._points(self._pending))
        worth = self._acquisition.worth(self._points(self._few))
        for _ in range(_CLIMBS):
            top = [self._few[place] for place in np.argsort(-worth, kind="stable")[:_CLIMBERS]]
            near = around(self._problem, top, self._taken.union(self._few), self._rng)
            if near:
                self._few += near
                worth = np.append(worth, self._acquisition.worth(self._points(near)))
        chosen = self._few.pop(int(np.argmax(worth)))
        self.worth = float(worth.max())
        self._pending.append(chosen)
        self._taken.add(chosen)
        return [chosen]

    def _points(self, designs: Sequence[Design]) -> Floats:
        return encoded(self._problem.space, self._problem.space.batch(designs))


def estimate_gains(
    data: TrainingData,
    means: Floats,  # (n, targets)
    deviations: Floats,  # (n, targets)
    rng: np.random.Generator,
) -> Floats:
    """Return a cheap Monte Carlo estimate of each candidate's hypervolume gain, (n,).

    Random points are drawn between the best optimistic prediction and the reference point. The
    estimate is the number of points that the candidate's optimistic prediction dominates and the
    front does not, times the probability that the candidate keeps every limit that a surrogate
    predicts.

    Args:
        data: training data, with the front and the scales of the losses.
        means: predicted means of all objectives and of the limits on measured metrics.
        deviations: standard deviations of these predictions.
        rng: generator of the points.
    """
    hopes = np.column_stack(
        [
            scale.judged(scale.losses(means[:, place] - _OPTIMISM * deviations[:, place]))
            for place, scale in enumerate(data.scales)
        ]
    )
    low = np.minimum(hopes.min(axis=0), -1.0)
    darts = low * rng.random((_DARTS, len(low)))
    for member in data.front:
        darts = darts[~(member <= darts).all(axis=1)]
    hits = np.ones((len(hopes), len(darts)), dtype=bool)
    for place in range(len(low)):
        hits &= hopes[:, place, None] <= darts[None, :, place]
    worth = hits.sum(axis=1) + 1e-3
    for place, target in enumerate(data.targets):
        if target.threshold is not None:
            worth = worth * ndtr((means[:, place] - target.threshold) / deviations[:, place])
    return np.asarray(worth)
