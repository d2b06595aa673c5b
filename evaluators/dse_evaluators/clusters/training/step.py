"""How long a training step takes, in parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.collectives import seconds
from dse_evaluators.clusters.systems import System
from dse_evaluators.clusters.topology import neighbours_s, spread_s
from dse_evaluators.clusters.training.block_time import WORD_BYTES, Block, Chip
from dse_evaluators.clusters.training.memory import GRADIENT_BYTES, weights
from dse_evaluators.clusters.training.plan import RECOMPUTED, Job, Plan
from dse_evaluators.workloads.transformer_configs import Transformer

_OPTIMIZER_BYTES = 30.0
"""A step of Adam, a weight: moments and copy read and written, gradient read, weight written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Seconds of a step that sum to it; every field is (n,)."""

    compute_s: Floats
    recompute_s: Floats
    tensor_s: Floats
    bubble_s: Floats
    pipeline_s: Floats
    data_s: Floats
    optimizer_s: Floats

    @property
    def total_s(self) -> Floats:
        busy = self.compute_s + self.recompute_s + self.tensor_s + self.bubble_s
        return busy + self.pipeline_s + self.data_s + self.optimizer_s


def step(job: Job, plan: Plan, one: Block, chip: Chip, system: System) -> Step:
    """The parts of a step, made of what the kernels of one layer and microbatch take.

    Every device runs its layers for each microbatch, and waits once for the rest of the pipeline
    to fill and to drain; interleaving shortens that wait and sends more messages. Gradients are
    summed over replicas after the last backward pass, as far as that of all but the last microbatch
    does not hide them.

    Source:
        Narayanan et al.: Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM, 2021, section 2.2 (bubble, messages) and 3.2; Korthikanti et al., 2022, section
        4 (sequence parallelism, selective recomputation).
    """
    model = job.model
    layers = model.layers / plan.pipeline
    compute_s = layers * (one.forward_s + one.backward_s)
    recompute_s = layers * _again_s(one, plan)
    tensor_s = layers * _tensor_s(job, plan, system)
    pass_s = compute_s + recompute_s + tensor_s
    count = plan.microbatches
    return Step(
        compute_s=count * (compute_s + one.head_s),
        recompute_s=count * recompute_s,
        tensor_s=count * tensor_s,
        bubble_s=(plan.pipeline - 1.0) / plan.interleave * pass_s,
        pipeline_s=count * _pipeline_s(job, plan, system),
        data_s=_data_s(model, plan, system),
        optimizer_s=chip.passes_s(
            _OPTIMIZER_BYTES * weights(model, plan) / np.where(plan.zero >= 1, plan.data, 1.0)
        ),
    )


def _again_s(one: Block, plan: Plan) -> Floats:
    """What of a layer is computed twice."""
    kinds = {"none": np.zeros_like(one.core_s), "selective": one.core_s + one.softmax_s}
    choices = [kinds.get(word, one.forward_s) for word in RECOMPUTED]
    return np.choose(plan.recompute.astype(np.intp), choices)


def _tensor_s(job: Job, plan: Plan, system: System) -> Floats:
    """What the shares of a layer tell one another for a microbatch.

    Two all-reduces forward and two backward, and two more where all is computed again; with
    sequence parallelism each is an all-gather and a reduce-scatter, and two all-gathers bring the
    inputs back that the backward pass needs whole.
    """
    size = WORD_BYTES * plan.microbatch * job.sequence * job.model.hidden
    again = plan.recompute == RECOMPUTED.index("full")
    sums = 4.0 + np.where(again, 2.0, 0.0)
    whole_s = neighbours_s(system, "all_reduce", size, plan.tensor)
    # One half of a ring's all-reduce: nobody measured the two halves on this fabric.
    half_s = whole_s / 2.0
    return np.where(plan.sequence_parallel, (2.0 * sums + 2.0) * half_s, sums * whole_s)


def _pipeline_s(job: Job, plan: Plan, system: System) -> Floats:
    """The messages of one microbatch to the next stage and back."""
    size = WORD_BYTES * plan.microbatch * job.sequence * job.model.hidden / plan.tensor
    # A pipeline within one node is rare: all messages are charged as between nodes.
    once_s = seconds("send_recv", size, 2, system.between())
    return np.where(plan.pipeline > 1, 2.0 * plan.interleave * once_s, 0.0)


def _data_s(model: Transformer, plan: Plan, system: System) -> Floats:
    """What replicas tell one another: gradients, and with ZeRO 3 the weights twice."""
    count = weights(model, plan)
    gradients = GRADIENT_BYTES * count
    summed_s = spread_s(system, "all_reduce", gradients, plan.data, apart=plan.tensor)
    gathered_s = spread_s(system, "all_gather", WORD_BYTES * count, plan.data, apart=plan.tensor)
    scattered_s = spread_s(system, "reduce_scatter", gradients, plan.data, apart=plan.tensor)
    shared_s = scattered_s + gathered_s * np.where(plan.zero >= 3, 2.0 * plan.microbatches, 1.0)
    return np.where(plan.zero >= 1, shared_s, summed_s)
