"""Transfer of another study's results as a prior: its predictions, and the trust in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.encoding import blocks, encoded, encoded_designs
from dse.core.problem import Prior, Problem
from dse.core.space import DesignSpace
from dse.core.values import Floats
from dse.optimizers.bayesian.fidelity_agreement import agreement
from dse.optimizers.bayesian.gaussian_process import GaussianProcess, owners_of

_TRUST, _PAIRS = 0.5, 10.0
"""Initial trust in a prior, and the number of observed pairs that this trust is worth."""

_LARGEST = 300
"""Most designs that a prior is fitted to, evenly spaced; the cost grows with their cube."""


def weight(
    prior_values: Floats,  # (n,), predictions of the prior for the designs measured here
    own_values: Floats,  # (n,), measured values of these designs
) -> float:
    """Return the trust in another study's prediction, from 0 to 1, by rank agreement.

    The prediction is compared with values measured in this study; without any, the trust is a half.
    Disagreement makes the trust 0, never negative: a prediction that is always wrong is ignored.
    """
    score, pairs = agreement(prior_values, own_values)
    return max(0.0, (score + _TRUST * _PAIRS) / (pairs + _PAIRS))


@dataclass(frozen=True, slots=True)
class PriorMean:
    """Model of another study: one Gaussian process for each of the study's metrics."""

    space: DesignSpace
    learnt: Mapping[str, tuple[GaussianProcess | None, float, float]]

    @staticmethod
    def of(problem: Problem, prior: Prior) -> PriorMean:
        """Fit a Gaussian process to each metric of the prior study."""
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
                process = GaussianProcess.fit(points[rows], scaled, owners)
            learnt[metric] = (process, centre, width)
        return PriorMean(problem.space, learnt)

    def __call__(self, batch: Batch) -> dict[str, Floats]:
        """Return the prediction of each metric for these designs, (n,), in this study's units."""
        points = encoded(self.space, batch)
        return {
            metric: np.full(len(batch), centre)
            if process is None
            else centre + width * process.moments(points)[0]
            for metric, (process, centre, width) in self.learnt.items()
        }
