"""Compression of a real model by layer recipes, and measurement of its outputs and size."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from threadpoolctl import threadpool_limits

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.compression.model_layers import Recipes, costs, count, rest, smoothing, weights
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.resampling import resample_quality
from dse_evaluators.workloads.workload import Signals, Split


def measure_recipes(
    model: ModelRef, recipes: Recipes, split: Split, signals: Signals
) -> dict[str, float]:
    """Compress a model by recipes; return quality, size [B] and relative error of outputs.

    Raises:
        PluginError: the model's assets are not installed.
        SpecError, EvaluationError: a recipe cannot be applied, or an output is not finite.
    """
    return _measure_outputs(model, recipes, split, outputs(model, recipes, split, signals))


def measure_with_resamples(
    model: ModelRef, recipes: Recipes, split: Split, signals: Signals
) -> tuple[dict[str, float], dict[str, Floats]]:
    """Compress a model by recipes; return its metrics, and quality on resamples of the examples.

    Returns:
        The metrics of :func:`measure_recipes`, and resamples of each quality metric, (b,).

    Raises:
        PluginError: the model's assets are not installed.
        SpecError, EvaluationError: a recipe cannot be applied, or an output is not finite.
    """
    given = outputs(model, recipes, split, signals)
    resamples = resample_quality(workload_of(model), given, _reference(model, split), split)
    return _measure_outputs(model, recipes, split, given), resamples


def _measure_outputs(
    model: ModelRef, recipes: Recipes, split: Split, given: Single
) -> dict[str, float]:
    """Return quality, size [B] and relative error of a compressed model's outputs, (n, k)."""
    whole = _reference(model, split)
    found = costs(model, recipes)
    return {
        **workload_of(model).quality(given, whole, split),
        "size": sum((one.total for one in found), start=rest(model).total) / 8,
        "bits_per_weight": sum(one.stored for one in found) / count(model),
        "deviation": deviation(given, whole),
    }


def outputs(model: ModelRef, recipes: Recipes, split: Split, signals: Signals) -> Single:
    """Return the outputs of the compressed model for each example.

    Raises:
        EvaluationError: an output is infinite or not a number.
    """
    workload = workload_of(model)
    with threadpool_limits(limits=1):
        parameters = {**workload.parameters, **weights(model, recipes)}
        smoothed = replace(signals, smoothing=smoothing(model, recipes))
        given = workload.outputs(parameters, split, smoothed)
    if not np.isfinite(given).all():
        raise EvaluationError("an output of the compressed model is infinite or not a number")
    return given


def deviation(given: Single, whole: Single) -> float:
    """Return the mean squared error of the outputs over the mean square of the original ones."""
    wanted = whole.astype(np.float64)
    return float(((given - wanted) ** 2).mean() / (wanted**2).mean())


@cache
def _reference(model: ModelRef, split: Split) -> Single:
    """Return the outputs of the uncompressed model on a split's examples; cached."""
    workload = workload_of(model)
    with threadpool_limits(limits=1):
        return workload.outputs(workload.parameters, split, Signals())
