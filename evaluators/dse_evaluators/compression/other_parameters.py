"""Quality, size and computation of a model with modified parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

import numpy as np
from threadpoolctl import threadpool_limits

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.compression.cut_measures import ChangedModel
from dse_evaluators.compression.operators.bundle import bundle_layers
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.recipe_runner import deviation
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.resampling import resample_quality
from dse_evaluators.workloads.shakespeare import CONTEXT
from dse_evaluators.workloads.workload import Parameters, Signals, Split

LOOKED_UP = "embed"
"""Embedding table, of which each character looks up one row without a multiplication."""


def judge_outputs(model: ModelRef, given: Single, split: Split) -> dict[str, float]:
    """Return quality metrics of outputs, and their relative squared error to the original ones.

    Raises:
        EvaluationError: an output is infinite or not a number.
    """
    if not np.isfinite(given).all():
        raise EvaluationError("an output of the changed model is infinite or not a number")
    whole = reference(model, split)
    quality = workload_of(model).quality(given, whole, split)
    return {**quality, "deviation": deviation(given, whole)}


def outputs(
    model: ModelRef, parameters: Parameters, split: Split, signals: Signals | None = None
) -> Single:
    """Run a model with the given parameters on one thread, and return its outputs."""
    with threadpool_limits(limits=1):
        return workload_of(model).outputs(parameters, split, signals or Signals())


@cache
def reference(model: ModelRef, split: Split) -> Single:
    """Return the outputs of the uncompressed model on a split's examples; cached."""
    return outputs(model, workload_of(model).parameters, split)


@cache
def calibration(model: str) -> Mapping[str, Single]:
    """Return each layer's inputs on training examples, (n, inputs)."""
    with threadpool_limits(limits=1):
        return workload_of(model).calibration()


def run_cut(model: str, parameters: Parameters, split: Split) -> ChangedModel:
    """Run a cut model; return outputs, size [B] and relative number of multiplications."""
    size, work_done = float(size_bytes(parameters)), computation(model, parameters)
    return ChangedModel(
        outputs=outputs(model, parameters, split),
        costs={"size": size, "computation": work_done},
    )


def run_zeroed(model: ModelRef, removed: Collection[str], split: Split) -> ChangedModel:
    """Return outputs and costs of a model of the user without some residual branches.

    Args:
        model: the model.
        removed: names of the parameters of the removed branches. They are zero in inference, and
            not counted in the size [B] and in the fraction of parameters that are kept.
        split: the examples.
    """
    whole = workload_of(model).parameters
    left = {name: array for name, array in whole.items() if name not in removed}
    zeroed = {name: np.zeros_like(one) if name in removed else one for name, one in whole.items()}
    share = sum(array.size for array in left.values()) / sum(one.size for one in whole.values())
    return ChangedModel(
        outputs=outputs(model, zeroed, split),
        costs={"size": float(size_bytes(left)), "kept_weights": share},
    )


def resample_changed(model: ModelRef, changed: ChangedModel, split: Split) -> dict[str, Floats]:
    """Return the quality metrics of a changed model on resamples of a split, (b,) by name."""
    return resample_quality(workload_of(model), changed.outputs, reference(model, split), split)


def size_bytes(parameters: Parameters, compressed: Mapping[str, Record] | None = None) -> int:
    """Return the bytes of serialized parameters; uncompressed ones are in fp32."""
    return len(bundle_layers(parameters, compressed or {}).to_bytes())


def computation(model: str, parameters: Parameters) -> float:
    """Return the multiplications per character, as a fraction of the uncut model's."""
    return multiplications(parameters) / work(model)


@cache
def work(model: str) -> float:
    """Return the multiplications of the uncut model per character."""
    return multiplications(workload_of(model).parameters)


def multiplications(parameters: Parameters) -> float:
    """Return a transformer's multiplications per character, averaged over a context window.

    Every matrix except the embedding multiplies one vector per character. Each attention head
    multiplies its query by every key up to its position, and the same number of values by attention
    weights.

    Args:
        parameters: arrays by name; a ``qkv`` holds queries, keys and values in equal shares.
    """
    products = sum(
        array.size for name, array in parameters.items() if array.ndim == 2 and name != LOOKED_UP
    )
    heads = sum(len(array) / 3 for name, array in parameters.items() if name.endswith(".qkv"))
    return products + heads * (CONTEXT + 1)
