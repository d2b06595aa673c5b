"""Gaussian process whose prior mean is a multiple of a library's weighted prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.optimizers.bayesian.gaussian_process import GaussianProcess, Hyper
from dse.optimizers.bayesian.library_prior import LibraryMean, MemberWeights
from dse.optimizers.bayesian.metric_model import (
    Inputs,
    Prediction,
    Predictor,
    leave_one_out_densities,
)
from dse.optimizers.bayesian.output_transform import OutputTransform

_WORTH = 6.0
"""Number of measurements that the initial slope of the prior mean is worth."""
_SURE = 8
"""Measured designs below which the prior mean is used without a comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorMeanInputs:
    """Encoding of designs for a Gaussian process with a prior mean, which is the last column."""

    inputs: Inputs
    library: LibraryMean
    chosen: MemberWeights

    def points(self, batch: Batch) -> Floats:
        """Encode designs as model inputs, with the prior mean as the last column, (n, c + 1)."""
        mean = self.library.mean(batch, self.chosen.weights)
        return np.column_stack([self.inputs.points(batch), mean])


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorMeanPredictor:
    """Gaussian process of the difference between transformed losses and ``slope`` * prior mean."""

    process: GaussianProcess
    warp: OutputTransform
    slope: float
    densities: Floats
    """Leave-one-out log density of each loss."""

    @staticmethod
    def fit(
        points: Floats,
        losses: Floats,
        plain: Predictor,
        trust: float,
        *,
        spread: Floats | None = None,
        hyper: Hyper | None = None,
        warp: OutputTransform | None = None,
    ) -> PriorMeanPredictor:
        """Fit the Gaussian process, with the output transform of a model without a prior mean.

        The slope is the regression of the transformed losses on the prior mean, and never negative.
        Without measurements it is the trust, which counts as much as :data:`_WORTH` measurements.

        Args:
            points: (n, c + 1), inputs, then the prior mean.
            losses: (n,), finite.
            plain: the model without a prior mean.
            trust: expected correlation of the prior mean with the losses.
            spread: (n,), standard errors of the losses.
            hyper: hyperparameters to keep; ``None`` to fit them.
            warp: output transform, if it is not that of ``plain``.
        """
        warp, old = warp or plain.warp, plain.process
        values, mean = warp.learnt(losses), points[:, -1]
        centred = mean - mean.mean()
        width = 1.0
        slope = float(centred @ values + trust * _WORTH * width)
        slope = max(0.0, slope / float(centred @ centred + _WORTH * width))
        left = values - slope * mean
        turn = warp.slope(losses)
        variances = None if spread is None else (spread * turn) ** 2
        given = points[:, :-1]
        if hyper is None:
            process = GaussianProcess.fit(
                given, left, old.owners, alone=old.alone, variances=variances
            )
        else:
            process = GaussianProcess.at(
                given, left, old.owners, hyper, alone=old.alone, variances=variances
            )
        densities = leave_one_out_densities(left, *process.left_out(left), turn)
        return PriorMeanPredictor(process=process, warp=warp, slope=slope, densities=densities)

    def is_better_than(self, plain: Predictor) -> bool:
        """Return whether the model with a prior mean is to be used instead of ``plain``.

        It is used if it fits as well as ``plain``, or while measurements are few; never if the
        slope of the prior mean is 0.
        """
        if len(self.densities) < _SURE:
            return self.slope > 0
        return self.slope > 0 and float(self.densities.sum()) >= plain.score

    def condition(self, points: Floats, losses: Floats) -> PriorMeanPredictor:
        """Return the model conditioned on additional losses, with the same hyperparameters.

        Args:
            points: (k, c + 1), the added points.
            losses: (k,), their losses.
        """
        process = self.process
        known = process.mean + process.root @ (process.root.T @ process.weights)
        left = self.warp.learnt(losses) - self.slope * points[:, -1]
        more = GaussianProcess.at(
            np.vstack([process.points, points[:, :-1]]),
            np.append(known, left),
            process.owners,
            process.hyper,
            alone=process.alone,
        )
        return replace(self, process=more)

    def at(self, points: Floats) -> Prediction:
        """Return the predictive distribution of a new measurement, noise included, at k points."""
        means, deviations = self.process.moments(points[:, :-1])
        noise = self.process.amplitude * np.exp(self.process.hyper.noise)
        return Prediction(
            means=means + self.slope * points[:, -1],
            deviations=np.sqrt(deviations**2 + noise),
            warp=self.warp,
        )
