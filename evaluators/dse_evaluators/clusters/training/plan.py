"""How a training step is laid out over devices, and which layouts there cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from dse.core.metric import Fault
from dse.core.values import Array, Floats, Mask
from dse_evaluators.clusters.rules import Rule, told
from dse_evaluators.workloads.transformer_configs import Transformer

RECOMPUTED = ("none", "selective", "full")
"""What of a layer is computed again in the backward pass: nothing, attention's core, all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is trained: a model on sequences of so many tokens.

    With ``fused`` attention its scores are never written, and passes over none that a mask leaves
    out.
    """

    model: Transformer
    sequence: int
    fused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The layout of n steps; every field is (n,), shares of a whole step's devices and samples."""

    tensor: Floats
    pipeline: Floats
    data: Floats
    microbatch: Floats
    """Sequences that pass through the pipeline at once."""
    interleave: Floats
    """Stages of the pipeline on each device."""
    sequence_parallel: Mask
    recompute: Floats
    """The place among RECOMPUTED."""
    zero: Floats
    """The stage of ZeRO: 0 shares nothing among replicas, 3 all."""
    global_batch: Floats

    def take(self, rows: Array) -> Plan:
        """The plans of these rows."""
        return Plan(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    @property
    def devices(self) -> Floats:
        return self.tensor * self.pipeline * self.data

    @property
    def microbatches(self) -> Floats:
        """Of each replica and step."""
        return self.global_batch / (self.data * self.microbatch)


def infeasible(plan: Plan, model: Transformer, *, node_devices: int) -> dict[int, Fault]:
    """The first rule that each row breaks, if it breaks one.

    Source:
        Narayanan et al.: Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM, 2021, sections 2.2-2.3 and 3.3.
    """
    faults: dict[int, Fault] = {}
    fine = np.ones(plan.tensor.shape, dtype=bool)
    for rule in _rules(plan, model, node_devices):
        faults.update(told(rule, fine))
        fine &= ~rule.broken
    return faults


def _rules(plan: Plan, model: Transformer, node_devices: int) -> Iterator[Rule]:
    def divides(of: Floats | float, by: Floats, what: str) -> Rule:
        whole = np.broadcast_to(np.asarray(of, dtype=np.float64), by.shape)
        return Rule(whole % by != 0, f"{what}: {{has:g}} in {{needs:g}} leaves a rest", whole, by)

    yield Rule(
        plan.tensor > node_devices,
        "tensor parallel over {has:g} devices, but a node has {needs:g}",
        plan.tensor,
        np.full_like(plan.tensor, node_devices),
    )
    yield divides(model.heads, plan.tensor, "heads over tensor parallel devices")
    yield divides(model.kv_heads, np.minimum(plan.tensor, model.kv_heads), "key and value heads")
    yield divides(model.layers, plan.pipeline * plan.interleave, "layers over pipeline stages")
    yield Rule(
        (plan.zero > 0) & (plan.data < 2),
        "ZeRO {has:g} shares among replicas, and there is {needs:g}",
        plan.zero,
        plan.data,
    )
    yield divides(plan.global_batch, plan.data * plan.microbatch, "sequences over microbatches")
    interleaved = plan.interleave > 1
    yield Rule(
        interleaved & (plan.pipeline < 2),
        "{has:g} stages on each device, but a pipeline of {needs:g}",
        plan.interleave,
        plan.pipeline,
    )
    yield Rule(
        interleaved & (plan.microbatches % plan.pipeline != 0),
        "interleaved, {has:g} microbatches are no multiple of {needs:g} stages",
        plan.microbatches,
        plan.pipeline,
    )
