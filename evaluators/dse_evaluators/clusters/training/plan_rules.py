"""Rules that exclude impossible layouts of a training step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dse.core.metric import Fault
from dse.core.values import Floats, Mask
from dse_evaluators.clusters.rules import Rule, find_rule_faults
from dse_evaluators.clusters.training.plan import TrainingJob, TrainingPlan


def infeasible(plan: TrainingPlan, job: TrainingJob, *, node_devices: int) -> dict[int, Fault]:
    """The first rule that each row breaks, if it breaks one.

    Source:
        Narayanan et al.: Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM, 2021, sections 2.2-2.3 and 3.3; Megatron-Core for experts and contexts.
    """
    faults: dict[int, Fault] = {}
    fine = np.ones(plan.tensor.shape, dtype=bool)
    for rule in (*_shapes(plan, job, node_devices), *_choices(plan)):
        if rule.broken.any():
            faults.update(find_rule_faults(rule, fine))
            fine &= ~rule.broken
    return faults


def _shapes(plan: TrainingPlan, job: TrainingJob, node_devices: int) -> Iterator[Rule]:
    model = job.model
    yield Rule(
        plan.tensor > node_devices,
        "tensor parallel over {has:g} devices, but a node has {needs:g}",
        plan.tensor,
        np.full_like(plan.tensor, node_devices),
    )
    yield _divides(model.heads, plan.tensor, "heads over tensor parallel devices")
    yield _divides(model.kv_heads, np.minimum(plan.tensor, model.kv_heads), "key and value heads")
    stages = plan.pipeline * plan.interleave
    layers = _divides(model.layers, stages, "layers over pipeline stages")
    # Both ends may have one less than those between them, for the embedding and the head.
    balanced = (plan.pipeline > 2) & _whole(np.full_like(stages, model.layers + 2.0), stages)
    yield layers._replace(broken=layers.broken & ~balanced)
    # The first part of a text attends to less than the last: each device has one of both ends.
    ends = np.where(plan.context > 1, 2.0 * plan.context, 1.0)
    yield _divides(job.sequence, ends, "tokens over both ends of a context")
    yield _divides(model.experts, plan.expert, "experts over expert parallel devices")
    yield _divides(plan.data, plan.expert, "replicas over expert parallel devices")
    yield _divides(plan.global_batch, plan.data * plan.microbatch, "sequences over microbatches")


def _choices(plan: TrainingPlan) -> Iterator[Rule]:
    yield Rule(
        (plan.zero > 0) & (plan.replicas < 2),
        "ZeRO {has:g} shares among replicas, and there is {needs:g}",
        plan.zero,
        plan.replicas,
    )
    yield Rule(
        plan.overlap & (plan.replicas < 2),
        "to overlap what {has:g} replica tells the others, there must be {needs:g}",
        plan.replicas,
        np.full_like(plan.replicas, 2.0),
    )
    yield Rule(
        (plan.expert > 1) & (plan.tensor > 1) & ~plan.sequence_parallel,
        "experts over {has:g} devices want sequence parallelism beside {needs:g} tensor parallel",
        plan.expert,
        plan.tensor,
    )
    interleaved, spared = plan.interleave > 1, plan.schedule > 0
    yield Rule(
        interleaved & (plan.pipeline < 2),
        "{has:g} stages on each device, but a pipeline of {needs:g}",
        plan.interleave,
        plan.pipeline,
    )
    yield Rule(
        interleaved & ~_whole(plan.microbatches, plan.pipeline),
        "interleaved, {has:g} microbatches are no multiple of {needs:g} stages",
        plan.microbatches,
        plan.pipeline,
    )
    yield Rule(
        spared & (plan.pipeline < 2),
        "a schedule without bubbles for a pipeline of {has:g}; it must have {needs:g}",
        plan.pipeline,
        np.full_like(plan.pipeline, 2.0),
    )
    yield Rule(
        spared & interleaved,
        "a schedule without bubbles has one stage on each device, not {has:g}",
        plan.interleave,
        np.ones_like(plan.interleave),
    )


def _divides(of: Floats | float, by: Floats, what: str) -> Rule:
    whole = np.broadcast_to(np.asarray(of, dtype=np.float64), by.shape)
    return Rule(~_whole(whole, by), f"{what}: {{has:g}} in {{needs:g}} leaves a rest", whole, by)


def _whole(of: Floats, by: Floats) -> Mask:
    """True where nothing is left; exact for whole numbers, and sooner than a remainder."""
    parts = of / by
    whole: Mask = parts == np.floor(parts)
    return whole
