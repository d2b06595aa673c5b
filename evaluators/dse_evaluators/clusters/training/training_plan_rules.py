"""Constraints on training layouts, with the message for each violation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats, Mask
from dse_evaluators.clusters.rules import Rule, find_rule_failures
from dse_evaluators.clusters.systems import System
from dse_evaluators.clusters.training.training_plan import SCHEDULES, TrainingJob, TrainingPlan


def infeasible(plan: TrainingPlan, job: TrainingJob, *, system: System) -> dict[int, Failure]:
    """Return the first violated constraint of each infeasible training plan, by index.

    Source:
        Narayanan et al.: Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM, 2021, sections 2.2-2.3 and 3.3; Megatron-Core for experts and contexts.
    """
    failures: dict[int, Failure] = {}
    fine = np.ones(plan.tensor.shape, dtype=bool)
    for rule in (*_shapes(plan, job, system), *_choices(plan, uneven=job.uneven)):
        if rule.broken.any():
            failures.update(find_rule_failures(rule, fine))
            fine &= ~rule.broken
    return failures


def _shapes(plan: TrainingPlan, job: TrainingJob, system: System) -> Iterator[Rule]:
    model = job.model
    yield Rule(
        plan.tensor > system.node_devices,
        "tensor parallel over {has:g} devices, but a node has {needs:g}",
        plan.tensor,
        np.full_like(plan.tensor, system.node_devices),
    )
    if system.nodes:
        most = np.full_like(plan.tensor, system.nodes * system.node_devices)
        reason = "a plan for {has:g} devices, but the system has {needs:g}"
        yield Rule(plan.devices > most, reason, plan.devices, most)
    yield _divides(model.heads, plan.tensor, "heads over tensor parallel devices")
    yield _divides(model.kv_heads, np.minimum(plan.tensor, model.kv_heads), "key and value heads")
    stages = plan.pipeline * plan.interleave * plan.chunks
    layers = _divides(model.layers, stages, "layers over pipeline stages")
    if job.uneven:
        most = np.ceil(model.layers / plan.pipeline)
        own = plan.interleave * plan.chunks
        yield _divides(most, own, "layers of the fullest device over its stages")
    else:
        # Both end stages may have one layer less than others, for the embedding and the LM head.
        balanced = (plan.pipeline > 2) & _whole(np.full_like(stages, model.layers + 2.0), stages)
        balanced &= ~plan.joins_ends
        yield layers._replace(broken=layers.broken & ~balanced)
    # Causal attention costs less at the start of a sequence: each device gets one part of each end.
    ends = np.where(plan.context > 1, 2.0 * plan.context, 1.0)
    yield _divides(job.sequence, ends, "tokens over both ends of a context")
    yield _divides(model.experts, plan.expert, "experts over expert parallel devices")
    yield _divides(plan.data, plan.expert, "replicas over expert parallel devices")
    yield _divides(plan.global_batch, plan.data * plan.microbatch, "sequences over microbatches")


def _choices(plan: TrainingPlan, *, uneven: bool) -> Iterator[Rule]:
    yield Rule(
        (plan.zero > 0) & (plan.holders < 2),
        "ZeRO stage {has:g} shares among replicas, but there is only {needs:g}",
        plan.zero,
        plan.holders,
    )
    yield from _sharding(plan)
    yield Rule(
        plan.overlap & (plan.holders < 2),
        "to overlap communication of replicas, there must be {needs:g}, not {has:g}",
        plan.holders,
        np.full_like(plan.holders, 2.0),
    )
    yield Rule(
        (plan.expert > 1) & (plan.tensor > 1) & ~plan.sequence_parallel,
        "experts over {has:g} devices need sequence parallelism if tensor parallel over {needs:g}",
        plan.expert,
        plan.tensor,
    )
    yield Rule(
        plan.overlap_experts & (plan.expert < 2),
        "to overlap all-to-alls of experts, they must be over {needs:g} devices, not {has:g}",
        plan.expert,
        np.full_like(plan.expert, 2.0),
    )
    yield Rule(
        plan.overlap_experts & (plan.microbatches < 2),
        "all-to-alls overlap with another microbatch: there must be {needs:g}, not {has:g}",
        plan.microbatches,
        np.full_like(plan.microbatches, 2.0),
    )
    yield Rule(
        plan.word_bytes < plan.operand_bytes,
        "activations of {has:g} byte, but products read operands of {needs:g}",
        plan.word_bytes,
        plan.operand_bytes,
    )
    interleaved, spared = plan.interleave > 1, plan.schedule > 0
    yield Rule(
        interleaved & (plan.pipeline < 2),
        "{has:g} stages on each device, but a pipeline of {needs:g}",
        plan.interleave,
        plan.pipeline,
    )
    yield Rule(
        interleaved & ~_whole(plan.microbatches, plan.pipeline) & (not uneven),
        "{has:g} microbatches are no multiple of {needs:g} stages, as interleaving requires",
        plan.microbatches,
        plan.pipeline,
    )
    yield Rule(
        spared & (plan.pipeline < 2),
        "a zero-bubble schedule for a pipeline of {has:g} stage: there must be {needs:g} or more",
        plan.pipeline,
        np.full_like(plan.pipeline, 2.0),
    )
    yield Rule(
        spared & (plan.schedule < SCHEDULES.index("dualpipe")) & interleaved,
        "a zero-bubble schedule has one stage on each device, not {has:g}",
        plan.interleave,
        np.ones_like(plan.interleave),
    )
    yield from _dual_pipe(plan)


def _sharding(plan: TrainingPlan) -> Iterator[Rule]:
    """Yield the constraints on groups of replicas among which ZeRO shards."""
    grouped = plan.zero_group > 0
    yield Rule(
        grouped & (plan.zero < 1),
        "a zero_group of {has:g} devices shards nothing in ZeRO stage {needs:g}: leave it out",
        plan.zero_group,
        plan.zero,
    )
    yield Rule(
        grouped & ~_whole(plan.holders, np.maximum(plan.zero_group, 1.0)),
        "{has:g} devices with the same weights are no multiple of a zero_group of {needs:g}",
        plan.holders,
        plan.zero_group,
    )
    yield Rule(
        grouped & (plan.expert > 1),
        "a zero_group of {has:g}, but experts over {needs:g} devices: not modelled together",
        plan.zero_group,
        plan.expert,
    )
    second, threes = plan.secondary_group, np.full_like(plan.zero, 3.0)
    yield Rule(
        (second > 0) & (plan.zero < 3),
        "a secondary_group is gathered in ZeRO stage {needs:g}, not in {has:g}: leave it out",
        plan.zero,
        threes,
    )
    yield Rule(
        (second > 0) & ~_whole(plan.shards, np.maximum(second, 1.0)),
        "ZeRO shards among {has:g} devices, which is no multiple of a secondary_group of {needs:g}",
        plan.shards,
        second,
    )
    yield Rule(
        (second > 0) & (plan.expert > 1),
        "a secondary_group of {has:g}, but experts over {needs:g} devices: not modelled together",
        second,
        plan.expert,
    )
    yield Rule(
        plan.quantized_weights & (plan.zero < 3),
        "quantized_weights are gathered in ZeRO stage {needs:g}, not in {has:g}: leave it out",
        plan.zero,
        threes,
    )
    yield Rule(
        plan.quantized_weights & (plan.operand_bytes <= 1),
        "quantized_weights of {needs:g} byte, but weights have {has:g} already: leave it out",
        plan.operand_bytes,
        np.ones_like(plan.zero),
    )


def _dual_pipe(plan: TrainingPlan) -> Iterator[Rule]:
    """Yield the constraints on DualPipe and DualPipeV.

    Source:
        deepseek-ai/DualPipe, which checks them.
    """
    dual = plan.schedule >= SCHEDULES.index("dualpipe")
    two_ways = plan.schedule == SCHEDULES.index("dualpipe")
    twos = np.full_like(plan.pipeline, 2.0)
    yield Rule(
        dual & (plan.interleave > 1),
        "DualPipe places its stages itself: interleave {has:g}, not {needs:g}",
        plan.interleave,
        np.ones_like(plan.interleave),
    )
    yield Rule(
        two_ways & ~_whole(plan.pipeline, twos),
        "DualPipe has a pipeline of {has:g} stages, which is no multiple of {needs:g}",
        plan.pipeline,
        twos,
    )
    yield Rule(
        two_ways & ~_whole(plan.microbatches, twos),
        "DualPipe sends {has:g} microbatches from both ends: no multiple of {needs:g}",
        plan.microbatches,
        twos,
    )
    yield Rule(
        dual & (plan.microbatches < 2.0 * plan.pipeline),
        "DualPipe needs {needs:g} microbatches or more, two for each device of a pipeline: {has:g}",
        plan.microbatches,
        2.0 * plan.pipeline,
    )


def _divides(of: Floats | float, by: Floats, what: str) -> Rule:
    whole = np.broadcast_to(np.asarray(of, dtype=np.float64), by.shape)
    return Rule(
        ~_whole(whole, by),
        f"{what}: {{has:g}} in {{needs:g}} equal parts leaves a remainder",
        whole,
        by,
    )


def _whole(of: Floats, by: Floats) -> Mask:
    """Return where ``of`` is a multiple of ``by``, as a mask; faster than ``%``."""
    parts = of / by
    whole: Mask = parts == np.floor(parts)
    return whole
