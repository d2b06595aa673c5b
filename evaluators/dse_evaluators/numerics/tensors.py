"""Test tensors for rounding: samples of a distribution, or the weights of a real model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.models import MODELS, workload_of

_SHAPE = (128, 1024)
_DEGREES = 4  # degrees of freedom; at four the fourth moment is infinite
_OUTLIER_SHARE, _OUTLIER_SIZE = 1e-3, 50.0

Draw = Callable[[np.random.Generator], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]


def _outliers(
    rng: np.random.Generator,
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Draw normal values, of which one in a thousand is fifty times as large."""
    sizes = np.where(rng.random(_SHAPE) < _OUTLIER_SHARE, _OUTLIER_SIZE, 1.0)
    return rng.standard_normal(_SHAPE) * sizes


DISTRIBUTIONS: Mapping[str, Draw] = {
    "uniform": lambda rng: rng.uniform(-1, 1, _SHAPE),
    "gaussian": lambda rng: rng.standard_normal(_SHAPE),
    "student-t": lambda rng: rng.standard_t(_DEGREES, _SHAPE),
    "outliers": _outliers,
}
"""Distributions of random tensors, each of 131,072 values."""


@lru_cache(maxsize=8)
def tensors(name: str, seed: int) -> Mapping[str, Single]:
    """Return test tensors: a sample of the named distribution, or the named model's weights.

    Raises:
        SpecError: there is no such distribution or model.
        PluginError: the model needs an asset that is not installed.
    """
    if name in DISTRIBUTIONS:
        drawn = DISTRIBUTIONS[name](np.random.default_rng(seed))
        return {name: drawn.astype(np.float32)}
    check_tensors(name)
    workload = workload_of(name)
    return {layer: workload.parameters[layer] for layer in workload.compressible}


def check_tensors(name: str) -> None:
    """Check that a name is that of a distribution or of a model.

    Raises:
        SpecError: the name is neither.
    """
    if name not in DISTRIBUTIONS and name not in MODELS:
        hint = nearest(name, (*DISTRIBUTIONS, *MODELS))
        raise SpecError(f"there are no tensors {name!r}", hint=hint)
