"""Expected hypervolume gain of a design that was evaluated at a lower fidelity only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column
from dse.core.pareto import hypervolume, reference
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Mask
from dse.optimizers.bayesian.fidelity_calibration import (
    Calibration,
    choose_calibration,
    held_out,
    select_pairs,
)
from dse.units import units

_DRAWS = 32
"""Number of equally likely values that represent the distribution of a true metric."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Calibration of one lower fidelity (rung) to the true metric, with its held-out error.

    ``factor`` converts the fidelity's unit to that of the true metric.
    """

    curve: Calibration
    deviation: float
    factor: float


class PromotionValue:
    """Estimator of the hypervolume gain expected of a design evaluated at a lower fidelity.

    A true metric is assumed normal around the calibrated lower-fidelity value, with the held-out
    error as its standard deviation. Draws of several metrics are paired at random, with a fixed
    seed.
    """

    def __init__(self, problem: Problem, trials: Sequence[Trial]) -> None:
        self._problem = problem
        done = [trial for trial in trials if trial.state is State.DONE]
        point = reference(problem, done)
        assert point is not None
        self._point = point
        self._front = problem.trial_losses(done)[problem.feasible(done)]
        self._volume = hypervolume(self._front, point)
        self._steps: dict[tuple[str, str], _Step] = {}
        self._trials = trials

    def of(self, trial: Trial) -> float:
        """Return the hypervolume gain expected of a design evaluated at a lower fidelity."""
        rng = np.random.default_rng(0)
        values: dict[str, Floats] = {n: np.full(_DRAWS, v) for n, v in trial.metrics.items()}
        for metric, ladder in self._problem.ladders.items():
            known = [rung for rung in ladder if rung in trial.metrics]
            if not known:
                return 0.0
            if known[-1] != metric:
                values[metric] = self._draws(metric, known[-1], trial.metrics, rng)
        losses, kept = self._evaluate_draws(trial, values)
        added = [
            hypervolume(np.vstack([self._front, row]), self._point) - self._volume
            for row in losses[kept]
        ]
        return float(sum(added)) / _DRAWS

    def _draws(
        self, metric: str, rung: str, metrics: Mapping[str, float], rng: np.random.Generator
    ) -> Floats:
        if (metric, rung) not in self._steps:
            self._steps[metric, rung] = self._step(metric, rung)
        step = self._steps[metric, rung]
        centre = float(step.curve(np.array([metrics[rung] * step.factor]))[0])
        return centre + step.deviation * rng.permutation(_normal())

    def _step(self, metric: str, rung: str) -> _Step:
        low, high = select_pairs(self._problem, rung, metric, self._trials)
        errors = held_out(low, high) - high
        known = self._problem.metrics
        factor = units.converted(1.0, known[rung].unit, known[metric].unit)
        return _Step(choose_calibration(low, high), float(np.sqrt(np.mean(errors**2))), factor)

    def _evaluate_draws(self, trial: Trial, values: Mapping[str, Floats]) -> tuple[Floats, Mask]:
        """Return the losses of sampled true metrics, (draws, m), and which draws are feasible."""
        columns = {name: Column.of([v] * _DRAWS) for name, v in trial.design.items()}
        columns |= {name: Column(column) for name, column in values.items()}
        losses = self._problem.losses(columns, _DRAWS)
        kept = (self._problem.slacks(columns, _DRAWS) >= 0).all(axis=1)
        return losses, np.asarray(kept & np.isfinite(losses).all(axis=1))


def _normal() -> Floats:
    """Return equally likely values (quantiles) of the standard normal distribution."""
    from scipy.special import ndtri

    return np.asarray(ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS))
