"""Regression of a metric over the trials of a study, for an optimizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.protocols import MetricPrediction, Regression
from dse_evaluators.learned.metric_model import MetricModel, fit_metric
from dse_evaluators.learned.run_columns import InputColumn, column_of
from dse_evaluators.learned.run_features import Encoder

STANDARD_ERRORS = 1.645
"""Half-width of a 90 % interval of a normal distribution, in standard errors."""


@dataclass(frozen=True, kw_only=True)
class StudyRegression:
    """Fitted regression over designs of a study."""

    columns: tuple[InputColumn, ...]
    encoder: Encoder
    model: MetricModel

    def __call__(self, batch: Batch) -> MetricPrediction:
        values = {one.name: one.read(batch) for one in self.columns}
        return MetricPrediction(
            means=self.model.regressor.predict(self.encoder.encode(values)),
            deviation=self.model.half_width / STANDARD_ERRORS,
            is_logarithmic=self.model.is_logarithmic,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantMetric:
    """Regression of a metric that is the same in all trials."""

    value: float

    def __call__(self, batch: Batch) -> MetricPrediction:
        means = np.full(len(batch), self.value)
        return MetricPrediction(means=means, deviation=0.0, is_logarithmic=False)


def fit_study_metric(batch: Batch, values: Floats) -> Regression:
    """Fit the regression of a metric to n measured designs.

    Args:
        batch: the designs; the trials of equal designs are held out together.
        values: the metric of each design, (n,).
    """
    rows = [batch.row(at) for at in range(len(batch))]
    found = [column_of(name, [row.get(name) for row in rows]) for name in sorted(batch.names)]
    columns = tuple(column for column, _ in found)
    encoder = Encoder.of(columns)
    if np.ptp(values) == 0 or not encoder.columns:
        return ConstantMetric(value=float(np.mean(values)))
    features = encoder.encode({column.name: codes for column, codes in found})
    among = batch.distinct(batch.names)
    groups = np.arange(len(batch)) if among.place is None else among.place
    model = fit_metric(features, values, groups, encoder.directions({}))
    return StudyRegression(columns=columns, encoder=encoder, model=model)
