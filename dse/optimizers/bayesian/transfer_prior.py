"""Trust in another study, and its guesses for any design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.encoding import blocks, encoded, encoded_designs
from dse.core.problem import Prior, Problem
from dse.core.space import Space
from dse.core.values import Floats
from dse.optimizers.bayesian.fidelity_agreement import agreement
from dse.optimizers.bayesian.gaussian_process import GaussianProcess, owners_of

_TRUST, _PAIRS = 0.5, 10.0
"""Before anything was measured, a prior is half believed, as firmly as ten pairs would say."""

_LARGEST = 300
"""A guess is learnt from at most so many designs, evenly spaced: its price grows with the cube."""


def weight(
    prior_values: Floats,  # (n,), what the prior guesses of the designs measured here
    own_values: Floats,  # (n,), what was measured
) -> float:
    """Return the trust in the prior, from 0 to 1: its rank agreement, starting at a half.

    Disagreement makes it 0 and never negative: what is always wrong is not asked for advice.
    """
    score, pairs = agreement(prior_values, own_values)
    return max(0.0, (score + _TRUST * _PAIRS) / (pairs + _PAIRS))


@dataclass(frozen=True, slots=True)
class PriorMean:
    """The guess of a prior for any designs: a Gaussian process through what the prior knows."""

    space: Space
    learnt: Mapping[str, tuple[GaussianProcess | None, float, float]]

    @staticmethod
    def of(problem: Problem, prior: Prior) -> PriorMean:
        """Fit the guesses for all metrics that the prior holds."""
        points = encoded_designs(problem.space, prior.designs)
        owners = owners_of([block.stop - block.start for block in blocks(problem.space)])
        learnt = {}
        for metric, values in prior.metrics.items():
            rows = np.flatnonzero(np.isfinite(values))
            if len(rows) > _LARGEST:
                rows = rows[np.linspace(0, len(rows) - 1, _LARGEST).round().astype(int)]
            centre, width = float(values[rows].mean()), float(values[rows].std())
            process = None
            if len(rows) > 1 and width > 0:
                scaled = (values[rows] - centre) / width
                process = GaussianProcess.fitted(points[rows], scaled, owners)
            learnt[metric] = (process, centre, width)
        return PriorMean(problem.space, learnt)

    def __call__(self, batch: Batch) -> dict[str, Floats]:
        """The guess of each metric, in this study's units, (n,)."""
        points = encoded(self.space, batch)
        return {
            metric: np.full(len(batch), centre)
            if process is None
            else centre + width * process.moments(points)[0]
            for metric, (process, centre, width) in self.learnt.items()
        }
