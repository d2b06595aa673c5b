"""Time of a training step with offloading, in additive parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.offload.load import (
    PhaseLoad,
    backward,
    forward,
    forward_flops,
    optimizer,
    remade_flops,
)
from dse_evaluators.clusters.offload.node import OffloadNode
from dse_evaluators.clusters.offload.plan import OffloadPlan

RESOURCES = ("gpu", "download", "upload", "storage", "cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadStep:
    """Additive parts of a step's time, and its total work; every field is (n,)."""

    compute_s: Floats
    recompute_s: Floats
    transfer_s: Floats
    """Time that the passes wait for weights, gradients and activations."""
    optimizer_s: Floats
    """Time that the optimizer adds to the passes."""
    moved: PhaseLoad
    busy_s: tuple[Floats, ...]
    """Busy seconds of each of RESOURCES."""

    @property
    def total_s(self) -> Floats:
        return self.compute_s + self.recompute_s + self.transfer_s + self.optimizer_s


def step(plan: OffloadPlan, node: OffloadNode) -> OffloadStep:
    """Return the parts of a step's time, with the bytes that it moves.

    Each batch passes forward and backward, then the optimizer runs. With overlap, a phase takes
    about as long as its slowest resource. An overlapped optimizer runs within the last batch's
    backward pass.

    Source:
        Rajbhandari et al.: ZeRO-Infinity, 2021, section 6.2 (transfers under computation); Liao et
        al.: Fuyou, 2024, section 3 (the optimizer under the backward pass).
    """
    ahead, back, update = forward(plan), backward(plan), optimizer(plan)
    together = plan.overlapped
    forward_s = ahead.took_s(node, together, plan.layers)
    backward_s = back.took_s(node, together, plan.layers)
    both_s = (back + update).took_s(node, together, plan.layers)
    after_s = update.took_s(node, together, plan.layers)
    computed_s = 3.0 * forward_flops(plan) / node.flops_per_s
    remade_s = remade_flops(plan) / node.flops_per_s
    moved = (ahead + back).times(plan.accumulate) + update
    return OffloadStep(
        compute_s=plan.accumulate * computed_s,
        recompute_s=plan.accumulate * remade_s,
        transfer_s=plan.accumulate
        * np.maximum(forward_s + backward_s - computed_s - remade_s, 0.0),
        optimizer_s=np.where(plan.eager, both_s - backward_s, after_s),
        moved=moved,
        busy_s=moved.busy_s(node),
    )
