"""Computation and communication times of one layer for one microbatch, by parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.systems import System
from dse_evaluators.clusters.topology import neighbours_s, spread_s
from dse_evaluators.clusters.training.block_time import BlockTime, block, expert_tokens
from dse_evaluators.clusters.training.kernels import Chip
from dse_evaluators.clusters.training.training_plan import RECOMPUTED, TrainingJob, TrainingPlan

SEEN_BY_LAYERS = frozenset(
    {"tp", "cp", "ep", "microbatch", "sequence_parallel", "recompute", "number_format"}
    | {"activation_format", "overlap_experts"}
)
"""Inputs of a plan that determine the time of one layer."""

SEEN_BY_STAGES = frozenset({"tp", "dp", "cp", "microbatch", "activation_format"})
"""Inputs of a plan that determine the time of a message between stages."""


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
    moved_s: Floats
    """The part of the forward pass in which kernels only move data."""
    head_s: Floats
    """The LM head, which is not part of a layer."""


def layer(
    job: TrainingJob,
    plan: TrainingPlan,
    chips: Mapping[str, Chip],
    system: System,
    *,
    overlap_tax: float,
) -> LayerTime:
    """Compute the seconds of one layer for one microbatch, for each of n plans.

    Overlapped all-to-alls run during the passes of another microbatch through the layer; these
    passes lose ``overlap_tax`` of their rate meanwhile.

    Source:
        DeepSeek-AI: DeepSeek-V3, 2024, section 3.2.1 (DualPipe: the exchanges of one microbatch
        beside the computation of another).
    """
    one = block(job, plan, chips)
    again_s = _again_s(one, plan)
    forward_s, back_s = context_s(job, plan, system, one.core_s)
    shared_s, sent_s = tensor_s(job, plan, system), expert_s(job, plan, system)
    beside_s = one.forward_s + one.backward_s + again_s
    exposed_s = np.maximum(overlap_tax * sent_s, sent_s - beside_s)
    sent_s = np.where(plan.overlap_experts, exposed_s, sent_s)
    return LayerTime(
        compute_s=one.forward_s + one.backward_s,
        recompute_s=again_s,
        tensor_s=shared_s,
        context_s=forward_s + back_s,
        expert_s=sent_s,
        weights_s=one.weights_s,
        backward_s=one.backward_s + again_s + back_s + (shared_s + sent_s) / 2.0,
        moved_s=one.softmax_s + one.elementwise_s,
        head_s=one.head_s,
    )


def _again_s(one: BlockTime, plan: TrainingPlan) -> Floats:
    """Return the seconds of recomputing a layer's activations in the backward pass, (n,)."""
    kinds = {"none": np.zeros_like(one.core_s), "selective": one.core_s + one.softmax_s}
    choices = [kinds.get(word, one.forward_s) for word in RECOMPUTED]
    return np.choose(plan.recompute.astype(np.intp), choices)


def tensor_s(job: TrainingJob, plan: TrainingPlan, system: System) -> Floats:
    """Return the seconds of a layer's tensor-parallel collectives for one microbatch, (n,).

    There are two all-reduces forward and two backward, and two more with full recomputation. With
    sequence parallelism each is an all-gather and a reduce-scatter, and the backward pass needs two
    more all-gathers of its inputs. All communication is exposed, in the format of activations.

    Source:
        Shoeybi et al., 2019, figure 4; Korthikanti et al., 2022, section 4.2.
    """
    size = plan.word_bytes * plan.tokens(job.sequence) * job.model.hidden
    again = plan.recompute == RECOMPUTED.index("full")
    sums = 4.0 + np.where(again, 2.0, 0.0)
    whole_s = neighbours_s(system, "all_reduce", size, plan.tensor)
    # Half of an all-reduce on a ring: all-gather and reduce-scatter were not measured here.
    half_s = whole_s / 2.0
    return np.where(plan.sequence_parallel, (2.0 * sums + 2.0) * half_s, sums * whole_s)


def context_s(
    job: TrainingJob, plan: TrainingPlan, system: System, core_s: Floats
) -> tuple[Floats, Floats]:
    """Return the seconds of ring attention's communication that no computation hides, (n,).

    Forward and backward passes are added.

    In the forward pass a device sends its current keys and values to its neighbour, once for each
    other device, while it processes them; in the backward pass it sends them again with their
    gradients, during twice the work. Recomputation repeats the forward messages.

    Args:
        job: the model and its sequences.
        plan: the layouts.
        system: the cluster.
        core_s: forward seconds of the attention core over all steps of the ring, (n,).

    Source:
        Liu et al.: Ring Attention with Blockwise Transformers for Near-Infinite Context, 2023,
        section 3 (the exchange hides behind a block of the core).
    """
    model = job.model
    held = np.maximum(model.kv_heads / plan.tensor, 1.0) * model.head
    size = 2.0 * plan.word_bytes * plan.tokens(job.sequence) * held
    turn_s = core_s / plan.context

    def ring_s(times: float, work: float) -> Floats:
        sent_s = spread_s(system, "send_recv", times * size, np.full_like(size, 2.0), apart=apart)
        return (plan.context - 1.0) * np.maximum(sent_s - work * turn_s, 0.0)

    # Most neighbours in a ring share a node, but the ring waits for the pairs that do not.
    apart = plan.tensor * plan.context / 2.0
    forward_s = ring_s(1.0, 1.0)
    again = plan.recompute != RECOMPUTED.index("none")
    return forward_s, ring_s(2.0, 2.0) + np.where(again, forward_s, 0.0)


def passed_s(job: TrainingJob, plan: TrainingPlan, system: System) -> Floats:
    """Return the seconds of sending a microbatch from one pipeline stage to the next, (n,).

    Each tensor-parallel device sends its share, and the next stage gathers the shares; without
    ``split_messages`` each sends everything.

    Source:
        Narayanan et al., SC 2021, section 4.1 (scatter/gather between stages).
    """
    parts = plan.tensor if job.split_messages else 1.0
    size = plan.word_bytes * plan.tokens(job.sequence) * job.model.hidden / parts
    apart = plan.tensor * plan.replicas
    return spread_s(system, "send_recv", size, np.full_like(size, 2.0), apart=apart)


def expert_s(job: TrainingJob, plan: TrainingPlan, system: System) -> Floats:
    """Return the seconds of a layer's expert all-to-alls, (n,).

    There are four: tokens to their experts and back, forward and backward; full recomputation adds
    two. Each carries every token that the device's experts receive, in the format of activations.

    Source:
        Lepikhin et al.: GShard, 2020, section 3.2; Fedus et al.: Switch Transformers, 2021, section
        5 (the backward pass repeats the exchanges of the forward pass).
    """
    if job.model.experts <= 1:
        return np.zeros_like(plan.tensor)
    size = plan.word_bytes * expert_tokens(job, plan) * job.model.hidden / plan.tensor
    once_s = spread_s(system, "all_to_all", size, plan.expert, apart=plan.tensor * plan.context)
    return np.where(plan.recompute == RECOMPUTED.index("full"), 6.0, 4.0) * once_s
