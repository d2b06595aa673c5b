"""Feasibility constraints of serving plans, with the message for each violation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats, Mask
from dse_evaluators.clusters.rules import Rule, find_rule_failures
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.serving_plan import Plans, PoolPlan
from dse_evaluators.workloads.transformer_configs import Transformer, layer_kinds

_GIB = 2.0**30


def impossible(plan: Plans, model: Transformer, fabric: ServingFabric) -> dict[int, Failure]:
    """Return the first violated constraint of each infeasible plan, by index; memory excluded.

    Args:
        plan: the plans.
        model: the model.
        fabric: fabric of the devices, with the number of devices of a node.
    """
    failures = dict[int, Failure]()
    fine = np.ones(len(plan.tp), dtype=bool)
    for rule in _rules(plan, model, fabric):
        if rule.broken.any():
            failures.update(find_rule_failures(rule, fine))
            fine &= ~rule.broken
    return failures


def too_large(needed: Floats, room: float, among: Mask) -> dict[int, Failure]:
    """Return the reason of infeasibility of each plan that exceeds memory, by index.

    Args:
        needed: bytes needed on a device, (n,).
        room: bytes available on a device.
        among: mask of the plans to check, (n,).
    """
    reason = "needs {has:.1f} GiB of memory, has {needs:.1f} GiB: {short:.1f} GiB short"
    needs = np.round(needed / _GIB, 1)  # rows that are equal after rounding share a fault
    rule = Rule(needed > room, reason, needs, np.full_like(needs, room / _GIB))
    return find_rule_failures(rule, among)


def _rules(plan: Plans, model: Transformer, fabric: ServingFabric) -> Iterator[Rule]:
    for pool in (plan.decode, plan.prefill) if plan.apart.any() else (plan.decode,):
        held = model.experts + plan.redundant_experts
        yield _divides(held, pool.ep, "experts over expert parallel groups")
        yield from _pool(pool, model, fabric)
    most = np.full_like(plan.tp, model.experts if model.experts > 1 else 0.0)
    reason = "{has:g} redundant experts, but the model has {needs:g}"
    yield Rule(plan.redundant_experts > most, reason, plan.redundant_experts, most)
    if np.isfinite(fabric.most_devices):
        most = np.full_like(plan.tp, fabric.most_devices)
        reason = "a plan for {has:g} devices, but the system has {needs:g}"
        yield Rule(plan.devices > most, reason, plan.devices, most)
    yield Rule(
        (plan.chunk > 0) & plan.apart,
        "chunks of {has:g} tokens join decode steps, but {needs:g} replicas run all prefill",
        plan.chunk,
        plan.prefill_replicas,
    )
    yield Rule(
        (plan.pp > 1) & (plan.draft_tokens > 0),
        "a pipeline of {has:g} stages does not support {needs:g} draft tokens per step",
        plan.pp,
        plan.draft_tokens,
    )


def _pool(pool: PoolPlan, model: Transformer, fabric: ServingFabric) -> Iterator[Rule]:
    """Yield the constraints on the replicas of one pool."""
    node = fabric.node_devices
    yield _whole_nodes("tensor parallel over {has:g} devices", pool.tp, node)
    for kind in layer_kinds(model):
        yield from _sharing(pool.tp, kind)
    yield from _routing(pool, model)
    yield _whole_nodes("experts shared by {has:g} devices", pool.stage_devices, node)
    layers = np.full_like(pool.pp, model.layers)
    reason = "{has:g} pipeline stages, but the model has {needs:g} layers"
    yield Rule(pool.pp > layers, reason, pool.pp, layers)


def _whole_nodes(what: str, devices: Floats, node_devices: int) -> Rule:
    """Return the constraint that devices are in one node, or fill several nodes."""
    node = np.full_like(devices, float(node_devices))
    reason = f"{what}, but a node has {{needs:g}}: one node or whole nodes"
    return Rule((devices > node) & (devices % node != 0), reason, devices, node)


def _sharing(tp: Floats, model: Transformer) -> Iterator[Rule]:
    """Yield the constraints of tensor parallelism: divisibility of the heads."""
    heads, shared = model.heads, model.kv_heads
    if model.state:
        heads, shared = model.state_heads, model.state_groups
    elif model.kv_latent:
        shared = 1  # every device keeps the latents
    kv_heads = np.full_like(tp, float(shared))
    over = "over tensor parallel devices"
    yield _divides(heads, tp, f"heads {over}")
    most, least = np.maximum(kv_heads, tp), np.minimum(kv_heads, tp)
    yield _divides(most, least, f"key and value heads {over}")


def _routing(pool: PoolPlan, model: Transformer) -> Iterator[Rule]:
    """Yield the constraints of expert parallelism and of attention data parallelism."""
    yield _divides(pool.stage_devices, pool.ep, "devices over expert parallel groups")
    yield Rule(
        (pool.groups > 1) & (model.experts <= 1),
        "{has:g} groups share the experts, but the model has {needs:g}",
        pool.groups,
        np.full_like(pool.tp, model.experts),
    )


def _divides(of: Floats | float, by: Floats, what: str) -> Rule:
    whole = np.broadcast_to(np.asarray(of, dtype=np.float64), by.shape)
    return Rule(
        whole % by != 0,
        f"{what}: {{has:g}} in {{needs:g}} equal parts leaves a remainder",
        whole,
        by,
    )
