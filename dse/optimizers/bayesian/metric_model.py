"""Gaussian-process model of one measured quantity over the parameters that it depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dse.core.batch import Batch
from dse.core.encoding import blocks, encoded
from dse.core.parameter import Real
from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.gaussian_process import ALONE, GaussianProcess, Hyper, owners_of
from dse.optimizers.bayesian.output_transform import Kind, OutputTransform
from dse.optimizers.bayesian.transfer_prior import PriorMean

_SMOOTH = 2.0
_DECADES = 1e12
_ROUNDING = 2.0**-50
"""Sizes below this fraction of the largest are rounding errors of a value of 0."""
_FEATURES = 6
"""Most modelled metrics that are used as features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Posterior of one objective's loss at k designs, normal on the transformed scale ``warp``."""

    means: Floats  # (k,)
    deviations: Floats  # (k,)
    warp: OutputTransform

    def gain(self, thresholds: Floats) -> Floats:
        """Return the expected improvement E[max(z - u, 0)] of loss u on threshold z, (k, t).

        The result has one value for each of k losses and t thresholds.
        """
        return self.warp.gain(self.means, self.deviations, thresholds)

    def below(self, thresholds: Floats) -> Floats:
        """Return the probability that each design's loss is at most each threshold, (k, t)."""
        return self.warp.below(self.means, self.deviations, thresholds)

    def at(self, shift: Floats | float) -> Floats:
        """Return the loss ``shift`` standard deviations above the median at each design, (k,)."""
        return self.warp.losses(self.means + shift * self.deviations)

    def take(self, rows: Ints) -> Prediction:
        """Return the posterior at a subset of the designs, given by their indices."""
        return Prediction(means=self.means[rows], deviations=self.deviations[rows], warp=self.warp)

    def widen(self, factor: float) -> Prediction:
        """Return the posterior with its standard deviations multiplied by ``factor``."""
        return Prediction(means=self.means, deviations=factor * self.deviations, warp=self.warp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """Prediction of a metric by a model of another study, as an input of a surrogate.

    The prediction is weighted by a trust from 0 to 1.
    """

    mean: PriorMean
    metric: str
    trust: float

    def of(self, batch: Batch) -> Floats:
        """Return another study's prediction, (n,), standardised and multiplied by the trust."""
        _, centre, width = self.mean.learnt[self.metric]
        return self.trust * (self.mean(batch)[self.metric] - centre) / (4 * width or 1.0)


class Encoder(Protocol):
    """Encoding of designs as inputs of a surrogate."""

    def points(self, batch: Batch) -> Floats:
        """Encode designs as model inputs, (n, c)."""
        ...


class Surrogate(Protocol):
    """Surrogate model of one loss, fitted to the measurements."""

    def at(self, points: Floats) -> Prediction:
        """Return the predictive distribution of a new measurement, noise included, at k points."""
        ...

    def condition(self, points: Floats, losses: Floats) -> Surrogate:
        """Return the surrogate conditioned on additional values, with unchanged hyperparameters."""
        ...


class Inputs:
    """Encoding of designs as inputs of one Gaussian process.

    The coordinates are the parameters that the modelled quantity depends on, modelled metrics that
    depend on these parameters alone, and other studies' predictions.
    """

    def __init__(
        self,
        problem: Problem,
        names: frozenset[str],
        probe: Batch,
        guesses: Sequence[Guess] = (),
    ) -> None:
        self._problem = problem
        self.names = names
        self._guesses = tuple(guesses)
        self._features = _features(problem, names, probe)
        layout = blocks(problem.space, names)
        more = len(self._features) + len(guesses)
        self.owners = owners_of([*(block.stop - block.start for block in layout), *([1] * more)])
        smooth = [isinstance(block.parameter, Real) for block in layout] + [True] * more
        self.alone = np.where(smooth, _SMOOTH, ALONE)
        """Length-scales of main effects: larger for continuous inputs than for discrete ones."""

    def points(self, batch: Batch) -> Floats:
        """Encode designs as model inputs, (n, c)."""
        points = encoded(self._problem.space, batch, self.names)
        extra = [guess.of(batch) for guess in self._guesses]
        if self._features:
            known = self._problem.known(batch).columns
            spans = self._features.items()
            extra = [*(_scale_feature(known[name], *span) for name, span in spans), *extra]
        return np.column_stack([points, *extra]) if extra else points


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """Fitted Gaussian process of a loss, with the output transform of the loss."""

    process: GaussianProcess
    warp: OutputTransform
    densities: Floats
    """Leave-one-out log density of each loss: each is predicted from all others."""

    @property
    def score(self) -> float:
        """Sum of the leave-one-out log densities of all losses, by which models are compared."""
        return float(self.densities.sum())

    @staticmethod
    def fit(
        points: Floats,  # (n, c)
        losses: Floats,  # (n,)
        owners: Ints,
        kinds: Sequence[Kind],
        *,
        alone: Floats | None = None,  # (b,), lengths of main effects
        spread: Floats | None = None,  # (n,), standard errors of the losses
    ) -> Predictor:
        """Fit a Gaussian process with each allowed output transform; return the best one.

        The best has the highest leave-one-out log density.
        """
        found = [_fit(points, losses, owners, kind, spread, alone=alone) for kind in kinds]
        return max(found, key=lambda one: one.score)

    def taught(self, points: Floats, losses: Floats, *, spread: Floats | None = None) -> Predictor:
        """Return a predictor fitted to other losses, with the same transform and hyperparameters.

        Args:
            points: encoded designs, (n, c).
            losses: losses of these designs, (n,).
            spread: (n,), standard errors of the losses.
        """
        old = self.process
        return _fit(
            points, losses, old.owners, self.warp.kind, spread, alone=old.alone, hyper=old.hyper
        )

    def condition(self, points: Floats, losses: Floats) -> Predictor:
        """Return the predictor conditioned on additional losses, with the same hyperparameters.

        Args:
            points: (k, c), the added points.
            losses: (k,), their losses.
        """
        process = self.process
        every = np.vstack([process.points, points])
        values = np.append(self._values(), self.warp.learnt(losses))
        more = GaussianProcess.at(every, values, process.owners, process.hyper, alone=process.alone)
        return Predictor(process=more, warp=self.warp, densities=self.densities)

    def at(self, points: Floats) -> Prediction:
        """Return the predictive distribution of a new measurement, noise included, at k points."""
        means, deviations = self.process.moments(points)
        noise = self.process.amplitude * np.exp(self.process.hyper.noise)
        return Prediction(means=means, deviations=np.sqrt(deviations**2 + noise), warp=self.warp)

    def latent(self, points: Floats) -> Prediction:
        """Return the predictive distribution of the noise-free quantity at k points, (k, c)."""
        means, deviations = self.process.moments(points)
        return Prediction(means=means, deviations=deviations, warp=self.warp)

    def _values(self) -> Floats:
        process = self.process
        return process.mean + process.root @ (process.root.T @ process.weights)


def kinds_of(losses: Floats, unit: str, *, several: bool = False) -> tuple[Kind, ...]:
    """Return the output transforms (``plain``, ``log``, ``logit``) that suit the losses.

    ``logit`` is for fractions, ``log`` for losses of one sign. Losses over more than twelve
    decades allow ``log`` only, because a plain process would resolve the largest loss only. With
    several objectives, however, a loss below the rounding error of the largest counts as 0, which
    allows ``plain`` only: the hypervolume is in natural units, where such a loss is 0, while its
    logarithm is far from all others.

    Args:
        losses: (n,), finite.
        unit: unit of the losses; a fraction has none or ``1``.
        several: whether the problem has other objectives.
    """
    sizes = np.abs(losses)
    one_sign = losses.min() > 0 or losses.max() < 0
    if several and sizes.min() < _ROUNDING * sizes.max():
        return ("plain",)
    if one_sign and unit in ("", "1") and sizes.max() <= 1 and sizes.max() > 0.05:
        return ("plain", "logit")
    if one_sign:
        return ("plain", "log") if sizes.max() < _DECADES * sizes.min() else ("log",)
    return ("plain",)


def _fit(
    points: Floats,
    losses: Floats,
    owners: Ints,
    kind: Kind,
    spread: Floats | None,
    *,
    alone: Floats | None = None,
    hyper: Hyper | None = None,
) -> Predictor:
    """Fit a Gaussian process to transformed losses; given hyperparameters are kept."""
    warp = OutputTransform.of(losses, kind)
    values = warp.learnt(losses)
    slope = warp.slope(losses)
    variances = None if spread is None else (spread * slope) ** 2
    if hyper is None:
        process = GaussianProcess.fit(points, values, owners, alone=alone, variances=variances)
    else:
        process = GaussianProcess.at(
            points, values, owners, hyper, alone=alone, variances=variances
        )
    densities = leave_one_out_densities(values, *process.left_out(values), slope)
    return Predictor(process=process, warp=warp, densities=densities)


def leave_one_out_densities(
    values: Floats, means: Floats, deviations: Floats, slope: Floats
) -> Floats:
    """Return the log density of each loss, predicted from all others, (n,).

    Args:
        values: (n,), transformed losses.
        means: (n,), their leave-one-out means.
        deviations: (n,), their leave-one-out standard deviations.
        slope: (n,), derivative of the transform at each loss.
    """
    misses = (values - means) / deviations
    return np.asarray(-0.5 * misses**2 - np.log(deviations) + np.log(slope))


def _features(
    problem: Problem, names: frozenset[str], probe: Batch
) -> Mapping[str, tuple[bool, float, float]]:
    """Return the modelled metrics that serve as model inputs, and each one's scaling.

    They depend on these parameters alone and vary over a sample of designs. The scaling is whether
    to take the logarithm, then the minimum and the range.
    """
    own = [
        name
        for name, source in problem.sources.items()
        if source.kind == "modelled" and len(source.reads) > 1 and source.reads <= names
    ]
    if not own or not len(probe):
        return {}
    known = problem.known(probe)
    fine = np.setdiff1d(np.arange(len(probe)), list(known.failures))
    found: dict[str, tuple[bool, float, float]] = {}
    for name in own[:_FEATURES]:
        values = known.columns[name][fine]
        if not len(values) or not np.isfinite(values).all():
            continue
        log = bool(values.min() > 0 and values.max() > 10 * values.min())
        mapped = np.log(values) if log else values
        with np.errstate(over="ignore"):
            width = float(np.ptp(mapped))
        if np.isfinite(width) and width > 1e-9 * max(abs(float(mapped.max())), 1e-300):
            found[name] = (log, float(mapped.min()), width)
    return found


def _scale_feature(values: Floats, log: bool, low: float, width: float) -> Floats:  # noqa: FBT001
    with np.errstate(all="ignore"):
        mapped = np.log(np.maximum(values, 1e-300)) if log else values
    return np.asarray(np.nan_to_num((mapped - low) / width, nan=0.5, posinf=2.0, neginf=-1.0))
