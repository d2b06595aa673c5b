"""Communication between replicas in a step: gradient reduction and weight gathers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.collectives import compute_link_share
from dse_evaluators.clusters.systems import System
from dse_evaluators.clusters.topology import spread_s
from dse_evaluators.clusters.training.kernels import WORD_BYTES
from dse_evaluators.clusters.training.model_state import count_weights
from dse_evaluators.clusters.training.training_plan import TrainingJob, TrainingPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCommunication:
    """Seconds and bytes sent of one gradient reduction and one weight gather; each is (n,)."""

    summed_s: Floats
    """All-reduce of all gradients."""
    scattered_s: Floats
    """Reduce-scatter of all gradients."""
    gathered_s: Floats
    """All-gather of all weights."""
    regathered_s: Floats
    """All-gather of all weights for a backward pass with ZeRO 3."""
    scattered_bytes: Floats
    gathered_bytes: Floats
    regathered_bytes: Floats

    def step_s(self, plan: TrainingPlan) -> Floats:
        """Return the seconds of communication between replicas in a step, before overlap, (n,)."""
        scatters, gathers, again = _times(plan)
        shared_s = scatters * self.scattered_s + gathers * self.gathered_s
        shared_s = shared_s + again * self.regathered_s
        return np.where(plan.zero >= 1, shared_s, self.summed_s)

    def step_bytes(self, plan: TrainingPlan) -> Floats:
        """Return the bytes that one device sends to other replicas in a step, (n,)."""
        scatters, gathers, again = _times(plan)
        shared = scatters * self.scattered_bytes + gathers * self.gathered_bytes
        shared = shared + again * self.regathered_bytes
        return np.where(plan.zero >= 1, shared, 2.0 * self.scattered_bytes)


def compute_exchange(job: TrainingJob, plan: TrainingPlan, system: System) -> ReplicaCommunication:
    """Compute seconds and bytes of one gradient and one weight collective between replicas.

    Gradients are in the plan's format, weights in their stored one. Gradients of experts are
    reduced over fewer replicas, because expert parallelism splits the experts over replicas. Where
    ZeRO shards within groups, each device reduces its shard across the groups as well. A second
    copy of weights is gathered within its group, in the stored format.

    Source:
        Wang et al.: ZeRO++, 2023, sections 3.1-3.2 (weights in 8 bits, second copy in a node); Zhao
        et al.: PyTorch FSDP, 2023, section 3.2.2 (hybrid sharding: reduce-scatter within a group,
        all-reduce across groups).
    """
    count = count_weights(job.model, plan)
    common = count.layers + count.edge
    stored = plan.operand_bytes * count.layers + WORD_BYTES * count.edge
    sizes = plan.gradient_bytes * common, np.where(plan.quantized_weights, common, stored)
    found = _communicate(system, *sizes, (plan.holders, plan.shards), plan.tensor)
    if job.model.experts > 1:
        few, apart = (plan.expert_replicas, plan.expert_shards), plan.tensor * plan.expert
        each = np.where(plan.quantized_weights, 1.0, plan.operand_bytes)
        sizes = plan.gradient_bytes * count.experts, each * count.experts
        more = _communicate(system, *sizes, few, apart)
        found = [one + other for one, other in zip(found, more, strict=True)]
    if (second := plan.secondary_group).any():
        whole = stored + plan.operand_bytes * count.experts
        near_s = spread_s(system, "all_gather", whole, np.maximum(second, 1.0), apart=plan.tensor)
        sent = whole * compute_link_share("all_gather", np.maximum(second, 1.0))
        again = np.where(second > 0, near_s, found[2]), np.where(second > 0, sent, found[4])
    else:
        again = found[2], found[4]
    return ReplicaCommunication(
        summed_s=found[0],
        scattered_s=found[1],
        gathered_s=found[2],
        regathered_s=again[0],
        scattered_bytes=found[3],
        gathered_bytes=found[4],
        regathered_bytes=again[1],
    )


def _communicate(
    system: System,
    gradients: Floats,
    stored: Floats,
    ranks: tuple[Floats, Floats],
    apart: Floats,
) -> list[Floats]:
    """Return the fields of :class:`ReplicaCommunication`.

    Args:
        system: the cluster.
        gradients: bytes of gradients, (n,).
        stored: bytes of weights, (n,).
        ranks: devices that hold the same weights, and those that share them, (n,) each.
        apart: devices from one rank to the next, (n,).
    """
    every, among = ranks
    share = compute_link_share("all_gather", among)
    found = [
        spread_s(system, "all_reduce", gradients, every, apart=apart),
        spread_s(system, "reduce_scatter", gradients, among, apart=apart),
        spread_s(system, "all_gather", stored, among, apart=apart),
        gradients * share,
        stored * share,
    ]
    groups = every / among
    if (groups > 1).any():
        shard = gradients / among
        found[1] = found[1] + spread_s(system, "all_reduce", shard, groups, apart=apart * among)
        found[3] = found[3] + shard * compute_link_share("all_reduce", groups)
    return found


def _times(plan: TrainingPlan) -> tuple[Floats, Floats, Floats]:
    """Return the numbers of gradient scatters, of gathers, and of those for backward passes.

    Up to ZeRO stage 1 a device accumulates the gradients of its microbatches locally; from stage 2
    on it has no memory for that and scatters each. Stage 3 gathers weights for the forward and the
    backward pass of each microbatch, lower stages once per step.

    Source:
        Rajbhandari et al.: ZeRO, 2020, section 7 (volumes of one microbatch: 2, 2 and 3 times the
        number of weights).
    """
    count = plan.microbatches
    whole = np.where(plan.zero >= 3, count, 0.0)
    return np.where(plan.zero >= 2, count, 1.0), np.maximum(whole, 1.0), whole
