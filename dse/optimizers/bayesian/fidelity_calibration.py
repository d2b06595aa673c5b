"""Calibration curve from a cheap fidelity to the true metric, with held-out predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Ints
from dse.units import units

Kind = Literal["as it is", "linear", "logarithmic", "monotone"]

FEWEST = 4
"""Fewest designs with both fidelities for a calibration; with fewer, the cheap value is used."""

_FOLDS = 10
_MARGIN = 0.98
"""Error ratio that a more complex calibration must reach to replace a simpler one."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted curve that predicts a metric at full fidelity from its value at a cheap fidelity."""

    kind: Kind
    curve: Callable[[Floats], Floats]

    def __call__(self, low: Floats) -> Floats:
        return self.curve(low)


def choose_calibration(low: Floats, high: Floats) -> Calibration:
    """Return the simplest calibration curve whose cross-validation error is nearly the lowest.

    Args:
        low: (n,), cheap metric of the designs that have both metrics, in the true metric's unit.
        high: (n,), true metric.
    """
    best, least = _identity(low, high), np.inf
    for fit in _kinds(low, high):
        error = _size(_held_out(fit, low, high) - high)
        if error < _MARGIN * least:
            best, least = fit(low, high), error
    return best


def held_out(low: Floats, high: Floats) -> Floats:
    """Return cross-validated predictions of a metric from its approximation, (n,).

    The form of the curve is chosen anew in each fold.
    """
    return _held_out(choose_calibration, low, high)


def select_pairs(
    problem: Problem, rung: str, metric: str, trials: Sequence[Trial]
) -> tuple[Floats, Floats]:
    """Return a fidelity's values and the true metric of the designs that have both, (n,) each.

    The true metric is the one at full fidelity; both arrays are in its unit.

    Args:
        problem: problem whose trials are given.
        rung: name of the lower fidelity.
        metric: name of the true metric.
        trials: trials to read.
    """
    both = {
        trial.design: (trial.metrics[rung], trial.metrics[metric])
        for trial in trials
        if rung in trial.metrics and metric in trial.metrics
    }
    table = np.array(list(both.values())).reshape(-1, 2)
    lower, upper = problem.metrics[rung].unit, problem.metrics[metric].unit
    return table[:, 0] * units.converted(1.0, lower, upper), table[:, 1]


def _held_out(fit: Callable[[Floats, Floats], Calibration], low: Floats, high: Floats) -> Floats:
    found = np.zeros(len(low))
    for fold in _folds(low):
        rest = np.setdiff1d(np.arange(len(low)), fold)
        found[fold] = fit(low[rest], high[rest])(low[fold])
    return found


def _folds(low: Floats) -> list[Ints]:
    """Return cross-validation folds as indices: every tenth design by the cheap metric.

    Each fold thus spans the range of the cheap metric.
    """
    order = np.argsort(low, kind="stable")
    return [order[start::_FOLDS] for start in range(min(_FOLDS, len(order)))]


def _kinds(low: Floats, high: Floats) -> Sequence[Callable[[Floats, Floats], Calibration]]:
    if len(low) < FEWEST:
        return [_identity]
    if low.min() > 0 and high.min() > 0:
        return [_identity, _linear, _logarithmic, _monotone]
    return [_identity, _linear, _monotone]


def _identity(low: Floats, high: Floats) -> Calibration:  # noqa: ARG001 - a fit
    return Calibration("as it is", lambda values: values)


def _linear(low: Floats, high: Floats) -> Calibration:
    slope, level = _line(low, high)
    return Calibration("linear", lambda values: slope * values + level)


def _logarithmic(low: Floats, high: Floats) -> Calibration:
    slope, level = _line(np.log(low), np.log(high))
    least = low.min()  # the curve is constant below the smallest observed value

    def curve(values: Floats) -> Floats:
        return np.asarray(np.exp(slope * np.log(np.maximum(values, least)) + level))

    return Calibration("logarithmic", curve)


def _line(low: Floats, high: Floats) -> tuple[float, float]:
    """Return slope and intercept of the least-squares line; the slope is 0 for constant input."""
    away = low - low.mean()
    square = float(away @ away)
    slope = float(away @ high) / square if square > 0 else 0.0
    return slope, float(high.mean() - slope * low.mean())


def _monotone(low: Floats, high: Floats) -> Calibration:
    """Fit an isotonic regression by pooling adjacent violators.

    It is increasing or decreasing, whichever fits better, and linear between designs.

    Source:
        Barlow, Bartholomew, Bremner, Brunk: Statistical Inference under Order Restrictions, 1972,
        section 1.2 (pool adjacent violators).
    """
    order = np.argsort(low, kind="stable")
    up, down = _fit_ascending(high[order]), -_fit_ascending(-high[order])
    curve = up if _size(up - high[order]) <= _size(down - high[order]) else down
    points, first = np.unique(low[order], return_index=True)
    sums = np.add.reduceat(curve, first)
    counts = np.diff(np.append(first, len(curve)))
    return Calibration("monotone", lambda values: np.interp(values, points, sums / counts))


def _fit_ascending(values: Floats) -> Floats:
    """Return the non-decreasing least-squares fit to the values."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size += sizes.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def _size(residuals: Floats) -> float:
    """Return the root mean square of the residuals; infinite if there are none."""
    return float(np.sqrt(np.mean(residuals**2))) if len(residuals) else np.inf
