"""Optimistic losses of unmeasured designs: a band calibrated by one-step-ahead errors.

The surrogates of a study are fitted to its record step by step, and each measurement is predicted
from the earlier ones. The score of a measurement is how much better than predicted it was, in
predicted standard deviations. These are the scores of a conformal predictor: their quantile is the
width of the band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.problem import Problem
from dse.core.recorded_gap import checkpoints
from dse.core.trial import State, Trial
from dse.core.values import Floats
from dse.optimizers.bayesian.measured_settings import MeasuredSplit, firsts, keys
from dse.optimizers.bayesian.metric_model import Encoder, Prediction, Predictor, Surrogate
from dse.optimizers.bayesian.model_fitting import ModelFitter
from dse.optimizers.bayesian.output_transform import Magnitude

_TAIL = 2
"""Number of scores beyond the quantile, from which follows how many of the latest ones are used;
earlier ones are of surrogates that err differently."""

_FEWEST = 3
"""Fewest known values of a quantity to which a surrogate is fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredValues:
    """Measured losses and limit violations, one row per setting of the measured parameters.

    Rows are in the order of the trials. The loss of an objective with a log scale is the loss of
    its logarithm. A violation is at most 0 where the limit is satisfied.
    """

    trials: tuple[Trial, ...]
    batch: Batch
    values: Floats  # (n, a + l): a losses, then l excesses; NaN if unknown

    @staticmethod
    def of(problem: Problem, split: MeasuredSplit, trials: Sequence[Trial]) -> MeasuredValues:
        """Return the measured values by setting of the measured parameters, first trial only.

        A measured combination is the values of the parameters that measurements read.
        """
        done = [trial for trial in trials if trial.state is State.DONE]
        batch = problem.space.batch([trial.design for trial in done])
        rows = firsts(keys(batch, sorted(split.measured_parameters)))
        done = [done[row] for row in rows.tolist()]
        columns, size = problem.columns(done), len(done)
        losses = problem.losses(columns, size)
        learnt = [problem.objectives[k].on_scale(losses[:, k]) for k in split.learnt]
        excesses = [-limit.slacks(columns, size) for limit in split.learnt_limits]
        return MeasuredValues(
            trials=tuple(done),
            batch=batch.take(rows),
            values=np.column_stack([losses[:, :0], *learnt, *excesses]),
        )


@dataclass(kw_only=True)
class ConformalBand:
    """Conformal prediction band around a study's measured objectives and limits.

    Its width follows from the errors of surrogates that predicted each measurement from the earlier
    ones. Adding measurements in one call or one at a time gives the same band.

    Args:
        problem: the problem.
        split: the problem's objectives and limits, split into modelled and measured ones.
    """

    problem: Problem
    split: MeasuredSplit
    _learnt: list[tuple[Encoder, Surrogate] | None] = field(default_factory=list, init=False)
    _maps: list[Magnitude] = field(default_factory=list, init=False)
    _scores: list[Floats] = field(default_factory=list, init=False)
    _done: int = field(default=0, init=False)
    _fitted: int = field(default=0, init=False)

    def learn(self, known: MeasuredValues) -> None:
        """Predict each new measurement from all earlier ones, then refit the surrogate with it.

        Args:
            known: all measured values so far, which start with those of the last call.
        """
        steps = set(checkpoints(len(known.values)))
        for row in range(self._done, len(known.values)):
            one = known.batch.take(np.array([row]))
            if row in steps and row > self._fitted:
                self._fit(known, row)
            if self._learnt:
                self._scores.append(self._predict_and_learn(one, known.values[row]))
        self._done = len(known.values)
        if self._done in steps and self._done > self._fitted:
            self._fit(known, self._done)

    @property
    def scores(self) -> Floats:
        """Scores of s predictions of ``a`` objectives and ``l`` limits, (s, a + l).

        A score is the error in predicted standard deviations; positive is better than predicted.
        """
        return np.array(self._scores) if self._scores else np.zeros((0, len(self._learnt)))

    def is_calibrated(self, confidence: float) -> bool:
        """Return whether there are enough predictions for a quantile at this confidence."""
        least = round(1.0 / (1.0 - confidence), 6)  # 1 / (1 - 0.9) is a little more than 10
        return bool(self._learnt) and len(self.scores) + 1 >= least

    def width(self, confidence: float) -> Floats:
        """Return the band's width in predicted deviations for each objective and limit, (a + l,).

        It is the conformal quantile of the latest scores, and at least 0.

        Args:
            confidence: share of measurements that are not better than the band, 0 to 1.

        Source:
            Vovk, Gammerman, Shafer: Algorithmic Learning in a Random World, 2005, chapter 2.
        """
        latest = int(np.ceil(round(_TAIL / (1.0 - confidence), 6)))
        scores = np.sort(self.scores[-latest:], axis=0)
        place = min(int(np.ceil(round((len(scores) + 1) * confidence, 6))), len(scores)) - 1
        return np.asarray(np.maximum(scores[place], 0.0))

    def optimistic(self, batch: Batch, width: Floats) -> Floats:
        """Return the optimistic end of the band: losses and limit violations, (n, a + l).

        Args:
            batch: n designs.
            width: (a + l,), the band's width for each quantity.
        """
        columns = []
        for place, learnt in enumerate(self._learnt):
            if learnt is None:
                columns.append(np.full(len(batch), -np.inf))
                continue
            encoder, surrogate = learnt
            found = _latent(surrogate, encoder.points(batch)).at(-float(width[place]))
            columns.append(found * self._maps[place].scale)
        return np.column_stack(columns) if columns else np.zeros((len(batch), 0))

    def _fit(self, known: MeasuredValues, count: int) -> None:
        """Fit new surrogates to the first ``count`` values."""
        self._fitted = count
        probe = self.problem.space.sample(256, self.problem.rng(0, 3))
        fitter = ModelFitter(self.problem, self.split, probe)
        done, values = known.trials[:count], known.values[:count]
        self._maps = [Magnitude.of(column) for column in values.T]
        mapped = [one(column) for one, column in zip(self._maps, values.T, strict=True)]
        chosen = [self.problem.objectives[place] for place in self.split.learnt]
        self._learnt = []
        for place, column in enumerate(mapped):
            if np.isfinite(column).sum() < _FEWEST:
                self._learnt.append(None)
            elif place < len(chosen):
                scale = self._maps[place].scale
                self._learnt.append(
                    fitter.objective(chosen[place], done, column, scale=scale, refit=True)
                )
            else:
                limit = self.split.learnt_limits[place - len(chosen)]
                self._learnt.append(fitter.limit(limit, done, column, refit=True))

    def _predict_and_learn(self, one: Batch, values: Floats) -> Floats:
        """Return the scores of one measurement, (a + l,), and condition the surrogates on it.

        The surrogates keep their hyperparameters. A value that an output transform does not allow,
        such as a first negative one, is learnt at the next checkpoint.
        """
        found = np.zeros(len(self._learnt))
        for place, learnt in enumerate(self._learnt):
            if learnt is None or not np.isfinite(values[place]):
                continue
            encoder, surrogate = learnt
            points, value = encoder.points(one), self._maps[place](values[place : place + 1])
            predicted = _latent(surrogate, points)
            with np.errstate(all="ignore"):
                mapped = predicted.warp.learnt(value)
            if np.isfinite(mapped[0]):
                found[place] = ((predicted.means - mapped) / predicted.deviations)[0]
                self._learnt[place] = encoder, surrogate.condition(points, value)
        return found


def _latent(surrogate: Surrogate, points: Floats) -> Prediction:
    """Return the prediction of the noise-free quantity at k points, (k, c).

    The standard deviations of the noise-free quantity vanish at measured designs; the scores
    calibrate them elsewhere. If they included the noise that a process assumes even of exact
    measurements, bands would stay wide for too long.
    """
    return surrogate.latent(points) if isinstance(surrogate, Predictor) else surrogate.at(points)
