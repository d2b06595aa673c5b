"""Predictions of metrics at designs that were not evaluated, with their standard errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import column_of
from dse.core.values import Floats
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.bayesian.model_fitting import ModelFitter

Moments = tuple[Floats, Floats]
"""Means and standard errors of a metric at k designs, each (k,), in the metric's unit."""

LEAST = 2
"""Fewest values of a metric to which a surrogate is fitted."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def predict_measured(
    problem: Problem, trials: Sequence[Trial], designs: Sequence[Design]
) -> dict[str, Moments]:
    """Return the posterior mean and standard error of each measured metric at k designs.

    One Gaussian process per metric is fitted to the finished trials. Metrics with fewer than two
    known values are left out.

    Args:
        problem: the problem; the metrics are those that its objectives and limits read.
        trials: the finished trials.
        designs: k legal designs.
    """
    probe = problem.space.sample(256, problem.rng(0, 3))
    fitter = ModelFitter(problem, MeasuredSplit(problem=problem), probe)
    done = [trial for trial in trials if trial.state is State.DONE]
    batch = problem.space.batch(designs)
    found: dict[str, Moments] = {}
    for name in sorted(problem.measured):
        values = np.asarray(column_of(done, name).values, dtype=float)
        if np.isfinite(values).sum() < LEAST:
            continue
        unit = problem.metrics[name].unit
        objective = Objective(expression=parse(name), goal="minimize", unit=unit)
        encoder, surrogate = fitter.objective(objective, done, values, refit=True)
        predicted = surrogate.at(encoder.points(batch))
        found[name] = transformed_moments(
            predicted.means, predicted.deviations, predicted.warp.losses
        )
    return found


def known_moments(problem: Problem, designs: Sequence[Design]) -> dict[str, Moments]:
    """Return each modelled metric at k designs, with standard error 0; NaN if undefined.

    Args:
        problem: the problem; the metrics are those that its objectives and limits read.
        designs: k legal designs.
    """
    known = problem.known(problem.space.batch(designs))
    found: dict[str, Moments] = {}
    for name in sorted((problem.asked - problem.measured) & known.columns.keys()):
        values = np.array(known.columns[name], dtype=float)
        values[list(known.failures)] = np.nan
        found[name] = values, np.zeros(len(values))
    return found


def transformed_moments(
    means: Floats,  # (k,)
    deviations: Floats,  # (k,)
    transform: Callable[[Floats], Floats],
) -> Moments:
    """Return mean and standard deviation of transformed normal values, by Gauss-Hermite quadrature.

    Args:
        means: means of the normal values.
        deviations: their standard deviations.
        transform: monotone map of values, elementwise.
    """
    values = transform(means[:, None] + deviations[:, None] * _NODES)
    centre = values @ _WEIGHTS
    return centre, np.sqrt(np.maximum((values - centre[:, None]) ** 2 @ _WEIGHTS, 0.0))


def joined(*parts: Mapping[str, Moments]) -> dict[str, Moments]:
    """Return the predictions of several groups of metrics as one mapping, sorted by name."""
    found = {name: moments for part in parts for name, moments in part.items()}
    return dict(sorted(found.items()))
