"""Retraining methods by name, with their results cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dse.errors import EvaluationError
from dse_evaluators.compression.retraining.group_lasso import group_lasso
from dse_evaluators.compression.retraining.knobs import METHODS as READS
from dse_evaluators.compression.retraining.knobs import Knobs
from dse_evaluators.compression.retraining.lagrangian import l_c
from dse_evaluators.compression.retraining.low_rank import factors, low_rank, train_with_distortion
from dse_evaluators.compression.retraining.magnitude import gradual, magnitude, train_with_mask
from dse_evaluators.compression.retraining.material import (
    Circumstances,
    Material,
    as_affines,
    as_arrays,
    material,
    shapes_of,
)
from dse_evaluators.compression.retraining.trained import Method, Trained, frozen, tensors_of
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make

VERSION = 1
"""Version of the methods' results; part of the cache key, to change whenever results do."""

_COUNTS = "weights_by_epoch"


def _left_alone(material: Material, knobs: Knobs) -> Trained:  # noqa: ARG001 - method signature
    return Trained.dense(frozen(material.whole), material, 0)


METHODS: Mapping[str, Method] = {
    "whole": _left_alone,
    "magnitude": magnitude,
    "masked": train_with_mask,
    "gradual": gradual,
    "l-c": l_c,
    "group-lasso": group_lasso,
    "low-rank": low_rank,
    "factors": factors,
    "distorted": train_with_distortion,
}


def train_network(circumstances: Circumstances, knobs: Knobs) -> Trained:
    """Compress and retrain the network by the chosen method, bitwise reproducibly."""
    # The format affects only the storage, so it must not be part of the cache key.
    return _train_or_load(circumstances, replace(knobs, format="fp32"))


@lru_cache(maxsize=8)
def _train_or_load(circumstances: Circumstances, knobs: Knobs) -> Trained:
    given = material(circumstances, knobs.seed)
    if "epochs" not in READS[knobs.method]:
        return _run_method(given, knobs)
    shapes = {**shapes_of(given.layers), _COUNTS: (knobs.epochs, len(given.layers))}
    arrays = load_or_make(
        _name(given, knobs), shapes, lambda: _pack_arrays(given, _run_method(given, knobs))
    )
    counts = arrays.pop(_COUNTS).astype(np.float64)
    return Trained(affines=as_affines(given.layers, arrays), weights=counts)


def _run_method(given: Material, knobs: Knobs) -> Trained:
    with deterministic():
        result = METHODS[knobs.method](given, knobs)
    tensors = tensors_of(result.affines)
    if not all(bool(tensor.isfinite().all()) for tensor in tensors):
        raise EvaluationError(
            f"training at a rate of {knobs.rate} diverged", hint="use a smaller rate"
        )
    return result


def _pack_arrays(given: Material, result: Trained) -> Arrays:
    """Return weights and weight counts as float32 arrays by name; counts to 2^24 are exact."""
    counts = result.weights.astype(np.float32)
    return {**as_arrays(given.layers, result.affines), _COUNTS: counts}


def _name(given: Material, knobs: Knobs) -> str:
    recipe = hashlib.sha256(f"{VERSION} {given.name} {knobs}".encode())
    return f"retrained-{knobs.method}-{recipe.hexdigest()[:16]}"
