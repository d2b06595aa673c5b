"""The search for the design that a surrogate's acquisition function values most."""

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
"""Candidates that pass the cheap guess and are valued by the acquisition function itself."""
_CLIMBERS = 4
_CLIMBS = 2
_DARTS = 1_024
_OPTIMISM = 1.0
"""Standard deviations by which a prediction is taken to be better than its mean."""


class Search:
    """From a pool by a cheap guess to a few, and from the best of those by legal steps uphill.

    A batch is chosen one by one, each design for what it adds to those pending and chosen.
    """

    def __init__(
        self,
        problem: Problem,
        trials: Sequence[Trial],
        lesson: TrainingData,
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
        best = [trials[place].design for place in lesson.elite]
        pool = candidates(problem, best, self._taken, rng)
        self.worth = -np.inf
        """What the acquisition function says of the design that was given last, a logarithm."""
        self._few: list[Design] = []
        if pool:
            means, deviations = surrogate.moments(self._points(pool))
            guess = promise(lesson, means, deviations, rng)
            order = np.argsort(-guess, kind="stable")[:_SCREENED]
            self._few = [pool[place] for place in order]

    def next(self) -> list[Design]:
        """The next design; none when nothing is left."""
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


def promise(
    lesson: TrainingData,
    means: Floats,  # (n, targets)
    deviations: Floats,  # (n, targets)
    rng: np.random.Generator,
) -> Floats:
    """A cheap guess of each candidate's worth, (n,): how many darts only it would hit.

    Darts are thrown between the best that is hoped for and the reference point; a hit is a dart
    that the optimistic prediction dominates and the front does not. It counts by the chance that
    the candidate keeps every learnt limit.
    """
    hopes = np.column_stack(
        [
            scale.judged(scale.losses(means[:, place] - _OPTIMISM * deviations[:, place]))
            for place, scale in enumerate(lesson.scales)
        ]
    )
    low = np.minimum(hopes.min(axis=0), -1.0)
    darts = low * rng.random((_DARTS, len(low)))
    for member in lesson.front:
        darts = darts[~(member <= darts).all(axis=1)]
    hits = np.ones((len(hopes), len(darts)), dtype=bool)
    for place in range(len(low)):
        hits &= hopes[:, place, None] <= darts[None, :, place]
    worth = hits.sum(axis=1) + 1e-3
    for place, target in enumerate(lesson.targets):
        if target.threshold is not None:
            worth = worth * ndtr((means[:, place] - target.threshold) / deviations[:, place])
    return np.asarray(worth)
