"""Interface of evaluators that are fitted to a user's runs and kept as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.protocols.capability import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class InputImportance:
    """Permutation importance of an input for a metric.

    Args:
        name: the input.
        rise: increase of the mean relative error on held-out runs if the values of the input are
            permuted among them: 0.1 is 10 points.
        stderr: standard error of ``rise`` over folds and permutations.
    """

    name: str
    rise: float
    stderr: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedMetric:
    """Regression of one metric, with its errors on runs that were held out of the fit.

    Args:
        metric: name of the metric.
        unit: unit of the metric.
        model: the regression that was chosen.
        runs: number of different designs that have the metric.
        held_out: number of held-out runs.
        mape: mean relative error: 0.1 is 10 %.
        largest: largest relative error.
        spearman: rank correlation of predictions and runs.
        coverage: share of held-out runs inside the 90 % band.
        grouped_by: column whose groups were held out as a whole; empty without one.
        importances: permutation importance of the inputs, largest first.
    """

    metric: str
    unit: str
    model: str
    runs: int
    held_out: int
    mape: float
    largest: float
    spearman: float
    coverage: float
    grouped_by: str
    importances: tuple[InputImportance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningResult:
    """Evaluator fitted to recorded runs, that is, to designs with their measured metrics.

    Args:
        text: content of the file to keep, which the option ``file`` of the evaluator accepts.
        metrics: the learned metrics.
        notes: how the runs were treated, for example which were left out.
    """

    text: str
    metrics: tuple[LearnedMetric, ...]
    notes: tuple[str, ...]


@runtime_checkable
class HasLearning(Protocol, metaclass=Capability):
    """Evaluator that can be fitted to a user's recorded runs and saved as a file."""

    def learn(self, file: Path, options: Mapping[str, Any]) -> LearningResult:
        """Fit the evaluator to the runs of a file, and return the fitted evaluator as a text.

        Args:
            file: the runs.
            options: options of the evaluator, except for ``file``; a metric without a unit in the
                options has its unit in the file.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPrediction:
    """Prediction of a metric at n designs: a normal distribution of the metric or its logarithm.

    Args:
        means: predicted values, on the scale of the distribution, (n,).
        deviation: standard deviation of the errors on held-out measurements, on that scale.
        is_logarithmic: whether the logarithm of the metric is normal.
    """

    means: Floats
    deviation: float
    is_logarithmic: bool

    def at(self, standard: float) -> Floats:
        """Return the metric at ``standard`` standard deviations above the predicted mean, (n,)."""
        values = self.means + standard * self.deviation
        return np.exp(np.clip(values, -700, 700)) if self.is_logarithmic else values


class Regression(Protocol):
    """Fitted regression of one metric over designs."""

    def __call__(self, batch: Batch) -> MetricPrediction:
        """Return the prediction at n designs."""
        ...


@runtime_checkable
class HasRegression(Protocol, metaclass=Capability):
    """Evaluator whose regression an optimizer can fit to the trials of a study."""

    def regress(self, batch: Batch, values: Floats) -> Regression:
        """Fit the regression of a metric to n measured designs; equal arguments give equal fits.

        Args:
            batch: the designs, with only those parameters that the metric depends on.
            values: the metric of each, (n,), finite.
        """
        ...
