"""Computation and communication of one layer for one microbatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.systems import System
from dse_evaluators.clusters.training.block_time import BlockTime, block
from dse_evaluators.clusters.training.exchange import context_s, expert_s, tensor_s
from dse_evaluators.clusters.training.kernels import Chip
from dse_evaluators.clusters.training.plan import RECOMPUTED, TrainingJob, TrainingPlan

SEEN_BY_LAYERS = frozenset(
    {"tp", "cp", "ep", "microbatch", "sequence_parallel", "recompute", "number_format"}
)
"""Inputs of a plan that determine the time of one layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """Seconds of one layer for one microbatch, forward and backward; every field is (n,)."""

    compute_s: Floats
    recompute_s: Floats
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    weights_s: Floats
    """The part of ``compute_s`` for weight gradients."""
    backward_s: Floats
    """The backward pass, with its recomputation and exposed communication."""
    head_s: Floats
    """The LM head, which is not part of a layer."""


def layer(
    job: TrainingJob, plan: TrainingPlan, chips: Mapping[str, Chip], system: System
) -> LayerTime:
    """Compute the seconds of one layer for one microbatch, for each of n plans."""
    one = block(job, plan, chips)
    again_s = _again_s(one, plan)
    told_s, back_s = context_s(job, plan, system, one.core_s)
    shared_s, sent_s = tensor_s(job, plan, system), expert_s(job, plan, system)
    return LayerTime(
        compute_s=one.forward_s + one.backward_s,
        recompute_s=again_s,
        tensor_s=shared_s,
        context_s=told_s + back_s,
        expert_s=sent_s,
        weights_s=one.weights_s,
        backward_s=one.backward_s + again_s + back_s + (shared_s + sent_s) / 2.0,
        head_s=one.head_s,
    )


def _again_s(one: BlockTime, plan: TrainingPlan) -> Floats:
    """Return the seconds of recomputing a layer's activations in the backward pass, (n,)."""
    kinds = {"none": np.zeros_like(one.core_s), "selective": one.core_s + one.softmax_s}
    choices = [kinds.get(word, one.forward_s) for word in RECOMPUTED]
    return np.choose(plan.recompute.astype(np.intp), choices)
