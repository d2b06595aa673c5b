"""Fit of one metric: the choice among candidates by cross-validation, and the conformal band."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse_evaluators.learned.regressors import Regressor, fit_candidates

COVERAGE = 0.9
"""Share of new designs whose metric a band contains."""

FOLDS = 5
MOST_CHOICE_ROWS = 1_000
"""Rows on which the candidates are compared; the chosen one is fitted to all rows."""

_WIDE_TARGET = 2.0
"""A positive metric that varies by at least this factor is predicted by its logarithm."""


@dataclass(frozen=True, kw_only=True)
class MetricModel:
    """Fitted model of one metric, with the half-width of its prediction band.

    The half-width is on the scale of the model.
    """

    regressor: Regressor
    is_logarithmic: bool
    half_width: float
    cross_validated: Mapping[str, float]  # mean squared error of each candidate on the scale

    def predict(
        self,
        features: Floats,  # (n, f)
    ) -> tuple[Floats, Floats, Floats]:
        """Return predictions and the ends of their bands, each (n,), in the metric's unit."""
        middle = self.regressor.predict(features)
        ends = middle, middle - self.half_width, middle + self.half_width
        if self.is_logarithmic:
            ends = tuple(np.exp(np.clip(one, -700, 700)) for one in ends)  # type: ignore[assignment]  # three of three
        return ends


def fit_metric(
    features: Floats,  # (n, f)
    target: Floats,  # (n,)
    groups: Ints,  # (n,)
    directions: Sequence[int],
) -> MetricModel:
    """Choose a regression model by cross-validation, fit it to all runs, and compute its band.

    The model with the least squared error is chosen. The half-width of the band is a quantile of
    the absolute residuals of held-out runs, as in split and cross-conformal prediction.

    Args:
        features: features of n runs.
        target: the metric of each run, in its unit.
        groups: number of the group of each run; a group is in one fold.
        directions: the monotone direction of each feature.

    Source:
        Vovk: Cross-conformal predictors, 2015; Lei et al.: Distribution-Free Predictive Inference
        for Regression, 2018, section 2.2.
    """
    logarithmic = is_wide(target)
    scaled = np.log(target) if logarithmic else target
    few = np.sort(np.random.default_rng(0).permutation(len(target))[:MOST_CHOICE_ROWS])
    held_out = _predict_held_out(features[few], scaled[few], groups[few], directions)
    errors = {name: float(np.mean((p - scaled[few]) ** 2)) for name, p in held_out.items()}
    name = min(errors, key=lambda one: (errors[one], one))
    if len(few) == len(target):
        residuals = np.abs(held_out[name] - scaled)
    else:
        residuals = _residuals_of_split(features, scaled, groups, directions, name)
    return MetricModel(
        regressor=fit_candidates(features, scaled, directions, [name])[name],
        is_logarithmic=logarithmic,
        half_width=conformal_quantile(residuals),
        cross_validated=errors,
    )


def is_wide(target: Floats) -> bool:
    """Return whether a metric is positive, and its range so wide that relative errors apply."""
    return bool(target.min() > 0 and target.max() >= _WIDE_TARGET * target.min())


def conformal_quantile(residuals: Floats) -> float:
    """Return the half-width that contains a new residual with probability COVERAGE."""
    place = math.ceil((len(residuals) + 1) * COVERAGE)
    return float(np.sort(residuals)[min(place, len(residuals)) - 1])


def folds_of(groups: Ints, count: int = FOLDS) -> Iterator[Mask]:
    """Yield the mask of the held-out runs of each fold; a group is held out as a whole.

    Groups are drawn in a fixed order, and each goes to the fold with the fewest runs so far.
    """
    distinct, sizes = np.unique(groups, return_counts=True)
    fold_of_group, filled = dict[int, int](), np.zeros(min(count, len(distinct)), dtype=np.int64)
    for at in np.random.default_rng(1).permutation(len(distinct)).tolist():
        fold = int(np.argmin(filled))
        fold_of_group[int(distinct[at])] = fold
        filled[fold] += sizes[at]
    fold_of_run = np.array([fold_of_group[one] for one in groups.tolist()])
    for number in range(len(filled)):
        yield fold_of_run == number


def _predict_held_out(
    features: Floats, scaled: Floats, groups: Ints, directions: Sequence[int]
) -> dict[str, Floats]:
    """Return each candidate's prediction of every run by models that were not fitted to it."""
    found = dict[str, Floats]()
    for out in folds_of(groups):
        for name, one in fit_candidates(features[~out], scaled[~out], directions).items():
            found.setdefault(name, np.zeros(len(scaled)))[out] = one.predict(features[out])
    return found


def _residuals_of_split(
    features: Floats, scaled: Floats, groups: Ints, directions: Sequence[int], name: str
) -> Floats:
    """Return the residuals of one fold, which suffices for large tables."""
    out = next(folds_of(groups))
    fitted = fit_candidates(features[~out], scaled[~out], directions, [name])[name]
    return np.abs(fitted.predict(features[out]) - scaled[out])
