"""Compression, retraining and measurement of one network."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.compression.retraining.diagonal_lasso import diagonal_lasso
from dse_evaluators.compression.retraining.group_lasso import group_lasso
from dse_evaluators.compression.retraining.lagrangian import l_c
from dse_evaluators.compression.retraining.low_rank import factors, low_rank, train_with_distortion
from dse_evaluators.compression.retraining.magnitude import gradual, magnitude, train_with_mask
from dse_evaluators.compression.retraining.operation_counts import forward_flop, training_flop
from dse_evaluators.compression.retraining.retrained_networks import TAIL, Circumstances
from dse_evaluators.compression.retraining.retraining_knobs import METHODS as READS
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.sgd import BATCH, updates_per_epoch
from dse_evaluators.compression.retraining.storing import count_weights, read_network, store_network
from dse_evaluators.compression.retraining.task_data import (
    COPIES,
    LabelledImages,
    TaskData,
    as_affines,
    load_task_data,
    shapes_of,
)
from dse_evaluators.compression.retraining.trained import (
    Method,
    Trained,
    distillation_of,
    frozen,
    tensors_of,
)
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.image_training import as_arrays
from dse_evaluators.workloads.network import Affines, forward
from dse_evaluators.workloads.resampling import LabelledOutputs, resample_quality
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make
from dse_evaluators.workloads.workload import Split

VERSION = 1
"""Version of the methods' results; part of the cache key, to change whenever results do."""

_COUNTS = "weights_by_epoch"


def _left_alone(data: TaskData, knobs: Knobs) -> Trained:  # noqa: ARG001 - method signature
    return Trained.dense(frozen(data.whole), data, 0)


METHODS: Mapping[str, Method] = {
    "whole": _left_alone,
    "magnitude": magnitude,
    "masked": train_with_mask,
    "gradual": gradual,
    "l-c": l_c,
    "group-lasso": group_lasso,
    "diagonals": diagonal_lasso,
    "low-rank": low_rank,
    "factors": factors,
    "distorted": train_with_distortion,
}


def measure_network(circumstances: Circumstances, knobs: Knobs, split: Split) -> dict[str, float]:
    """Compress and retrain a network; return its quality, stored size [B] and operations."""
    given = load_task_data(circumstances, knobs.seed)
    result = train_network(circumstances, knobs)
    record = store_network(result, given.layers, knobs)
    ours, whole, labels = _compare(given, read_network(record, given.layers), split)
    shown = updates_per_epoch(len(given.labels)) * BATCH
    has_teacher = distillation_of(knobs).has_teacher
    return {
        **_quality(ours, whole, labels),
        "size": record.cost.total / 8,
        "inference_flops": float(forward_flop(np.array(count_weights(record)), given.layers)),
        "training_flops": training_flop(
            result.weights, given.layers, shown, has_teacher=has_teacher
        ),
    }


def resample_network(circumstances: Circumstances, knobs: Knobs, split: Split) -> dict[str, Floats]:
    """Return the quality of a retrained network on resamples of a split's images, (b,) by name.

    Copies of an image with different noise are drawn together.
    """
    given = load_task_data(circumstances, knobs.seed)
    record = store_network(train_network(circumstances, knobs), given.layers, knobs)
    tables = _compare(given, read_network(record, given.layers), split)
    each = COPIES if circumstances.noise else 1
    ordered = np.arange(len(tables[2])).reshape(each, -1).T.ravel()  # copies of an image in a row
    ours, whole, labels = tables
    examples = LabelledOutputs(labels=labels[ordered], score=_quality, each=each)
    return resample_quality(examples, ours[ordered], whole[ordered], split)


def _compare(
    given: TaskData, small: Affines, split: Split
) -> tuple[Single, Single, judging.Labels]:
    """Return the logits of a network and of the uncompressed one, and the labels of a split."""
    examples: LabelledImages = getattr(given, split)
    with deterministic(), torch.inference_mode():
        ours, whole = (
            forward(given.network, affines, examples.images).numpy()
            for affines in (small, given.whole)
        )
    return ours, whole, examples.labels.numpy()


def _quality(ours: judging.Table, whole: judging.Table, labels: judging.Labels) -> dict[str, float]:
    return {**judging.measure_classifier(ours, whole, labels), **_by_class(ours, whole, labels)}


def _by_class(
    ours: judging.Table, whole: judging.Table, labels: judging.Labels
) -> dict[str, float]:
    """Return mismatches on tail classes and on the others, and the tail gap, by name.

    A mismatch is the fraction of images that the compressed network classifies differently.
    """
    rare = np.isin(labels, TAIL)
    of_tail, of_head = (
        judging.mismatches(ours[rows], whole[rows], labels[rows])["mismatch"]
        for rows in (rare, ~rare)
    )
    gap = judging.mismatches(ours, whole, labels, TAIL)["tail_gap"]
    return {"tail_mismatch": of_tail, "head_mismatch": of_head, "tail_gap": gap}


def train_network(circumstances: Circumstances, knobs: Knobs) -> Trained:
    """Compress and retrain the network by the chosen method, bitwise reproducibly."""
    # The format affects only the storage, so it must not be part of the cache key.
    return _train_or_load(circumstances, replace(knobs, format="fp32"))


@lru_cache(maxsize=8)
def _train_or_load(circumstances: Circumstances, knobs: Knobs) -> Trained:
    given = load_task_data(circumstances, knobs.seed)
    if "epochs" not in READS[knobs.method]:
        return _run_method(given, knobs)
    shapes = {**shapes_of(given.layers), _COUNTS: (knobs.epochs, len(given.layers))}
    arrays = load_or_make(
        _name(given, knobs), shapes, lambda: _pack_arrays(given, _run_method(given, knobs))
    )
    counts = arrays.pop(_COUNTS).astype(np.float64)
    return Trained(affines=as_affines(given.layers, arrays), weights=counts)


def _run_method(given: TaskData, knobs: Knobs) -> Trained:
    with deterministic():
        result = METHODS[knobs.method](given, knobs)
    tensors = tensors_of(result.affines)
    if not all(bool(tensor.isfinite().all()) for tensor in tensors):
        raise EvaluationError(
            f"training at a rate of {knobs.rate} diverged", hint="use a smaller rate"
        )
    return result


def _pack_arrays(given: TaskData, result: Trained) -> Arrays:
    """Return weights and weight counts as float32 arrays by name; counts to 2^24 are exact."""
    counts = result.weights.astype(np.float32)
    return {**as_arrays(given.layers, result.affines), _COUNTS: counts}


def _name(given: TaskData, knobs: Knobs) -> str:
    recipe = hashlib.sha256(f"{VERSION} {given.name} {knobs}".encode())
    return f"retrained-{knobs.method}-{recipe.hexdigest()[:16]}"
