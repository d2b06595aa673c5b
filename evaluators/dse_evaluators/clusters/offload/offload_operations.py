"""Operations, transfers and time of a training step with offloading, by pass and resource."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.clusters.offload.data_placement import (
    CPU,
    GPU,
    NVME,
    OPTIMIZER_BYTES,
    WORD_BYTES,
    OffloadPlan,
)
from dse_evaluators.clusters.offload.gpu_server import OffloadNode
from dse_evaluators.clusters.offload.residence import moved_activations

_ADAM_BYTES = 2.0 * OPTIMIZER_BYTES + 2.0 * WORD_BYTES
"""GPU memory bytes to update a weight: states read and written, gradient read, weight written."""

RESOURCES = ("gpu", "download", "upload", "storage", "cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLoad:
    """Operations, bytes moved and weights updated in one phase of a training step, each (n,)."""

    flops: Floats
    passed: Floats
    """Bytes that the GPU reads and writes in its own memory, apart from those of GEMMs."""
    down: Floats
    """Bytes from the host to the GPU."""
    up: Floats
    read: Floats
    """Bytes from the disks."""
    written: Floats
    updated: Floats
    """Weights that the CPU updates."""

    def __add__(self, other: PhaseLoad) -> PhaseLoad:
        return PhaseLoad(
            **{x.name: getattr(self, x.name) + getattr(other, x.name) for x in fields(self)}
        )

    def times(self, count: Floats) -> PhaseLoad:
        """Return the operations and transfers of ``count`` repetitions of the phase."""
        return PhaseLoad(**{x.name: getattr(self, x.name) * count for x in fields(self)})

    def busy_s(self, node: OffloadNode) -> tuple[Floats, ...]:
        """Return the busy seconds of GPU, link down, link up, disks and CPU, (n,) each."""
        return (
            self.flops / node.flops_per_s + self.passed / node.dram_bytes_per_s,
            self.down / node.pcie_bandwidth,
            self.up / node.pcie_bandwidth,
            node.storage_s(self.read, self.written),
            self.updated / node.adam_rate,
        )

    def took_s(self, node: OffloadNode, together: Mask, layers: Floats) -> Floats:
        """Return the seconds of a phase, (n,): sequential, or pipelined where ``together``.

        All layers are equal. The pipelined time is that of the slowest resource for all layers,
        plus the time of the other resources for one layer.
        """
        gpu, down, up, disks, cpu = self.busy_s(node)
        longest = np.maximum(np.maximum(np.maximum(gpu, down), np.maximum(up, disks)), cpu)
        total = gpu + down + up + disks + cpu
        return np.where(together, longest + (total - longest) / layers, total)


def forward_flops(plan: OffloadPlan) -> Floats:
    """Return the operations of one batch's forward pass, (n,).

    Source:
        Narayanan et al., SC 2021, equation 3: a third of its result without recomputation.
    """
    scores = 4.0 * plan.sequence * plan.hidden * plan.layers
    return plan.tokens * (2.0 * plan.parameters + scores)


def remade_flops(plan: OffloadPlan) -> Floats:
    """Return the operations of one batch to recompute activations that were not kept, (n,).

    The LM head is never recomputed.
    """
    head = 2.0 * plan.tokens * plan.vocabulary * plan.hidden
    return (1.0 - plan.kept) * (forward_flops(plan) - head)


def forward(plan: OffloadPlan) -> PhaseLoad:
    """Return the operations and transfers of one batch's forward pass."""
    weights, moved = _streamed_bytes(plan), moved_activations(plan)
    none = np.zeros_like(weights)
    return PhaseLoad(
        flops=forward_flops(plan),
        passed=none,
        down=weights,
        up=moved,
        read=_on_disk(plan.weights_at, weights),
        written=_on_disk(plan.activations_at, moved),
        updated=none,
    )


def backward(plan: OffloadPlan) -> PhaseLoad:
    """Return the operations and transfers of one batch's backward pass.

    The results are averages over the batches whose gradients are accumulated. Gradients that are
    summed on disk are read again for every batch except the first.
    """
    weights, moved = _streamed_bytes(plan), moved_activations(plan)
    gradients = plan.wire_bytes * plan.parameters
    goal = np.where(plan.keeps_gradients, plan.gradients_at, plan.runs_at)
    summed = _on_disk(goal, gradients)
    none = np.zeros_like(weights)
    return PhaseLoad(
        flops=2.0 * forward_flops(plan) + remade_flops(plan),
        passed=none,
        down=weights + moved,
        up=np.where(goal == GPU, 0.0, gradients),
        read=_on_disk(plan.weights_at, weights)
        + _on_disk(plan.activations_at, moved)
        + summed * (1.0 - 1.0 / plan.accumulate),
        written=summed,
        updated=none,
    )


def optimizer(plan: OffloadPlan) -> PhaseLoad:
    """Return the operations and transfers of one Adam update.

    With the states on disk, 12 bytes per weight are read and 14 written, of which 2 are the 16-bit
    weight.

    Source:
        Liao et al.: Adding NVMe SSDs to Enable and Accelerate 100B Model Fine-tuning on a Single
        GPU (Fuyou), 2024, section 3.
    """
    count, wire = plan.parameters, plan.wire_bytes * plan.parameters
    on_host = plan.runs_at == CPU
    goal = np.where(plan.keeps_gradients, plan.gradients_at, plan.runs_at)
    moments = _on_disk(plan.optimizer_at, OPTIMIZER_BYTES * count)
    weights = _streamed_bytes(plan)
    fetched = np.where(on_host, 0.0, np.where(goal == GPU, 0.0, wire))
    sent = np.where(on_host & (goal == GPU), wire, 0.0)
    return PhaseLoad(
        flops=np.zeros_like(count),
        passed=np.where(on_host, 0.0, _ADAM_BYTES * count),
        down=fetched + np.where(on_host, wire - weights, 0.0),
        up=sent + np.where(on_host, 0.0, weights),
        read=moments + _on_disk(goal, wire),
        written=moments + _on_disk(plan.weights_at, weights),
        updated=np.where(on_host, count, 0.0),
    )


def _streamed_bytes(plan: OffloadPlan) -> Floats:
    return plan.wire_bytes * plan.parameters * plan.streamed


def _on_disk(place: Floats, moved: Floats) -> Floats:
    return np.where(place == NVME, moved, 0.0)


def _passes_s(
    plan: OffloadPlan, node: OffloadNode, ahead: PhaseLoad, back: PhaseLoad
) -> tuple[Floats, Floats]:
    """Return the times [s] of both passes of a batch, (n,) each.

    Without held layers, the backward pass begins when the last layer's activations have left, and
    waits until they are back. Held layers compute in the meantime: what a layer takes to leave and
    to come back is hidden behind their two passes.

    Source:
        Wu et al.: SSDTrain, 2024, section 3: the last activations are kept for the backward pass.
    """
    forward_s = ahead.took_s(node, plan.overlapped, plan.layers)
    backward_s = back.took_s(node, plan.overlapped, plan.layers)
    ahead_s, back_s = ahead.busy_s(node), back.busy_s(node)
    computed_s = ahead_s[0] + back_s[0]
    moved_s = np.sum([*ahead_s[1:], *back_s[1:]], axis=0)
    waited_s = np.maximum(moved_s - plan.held * computed_s, 0.0) / plan.layers
    holds = plan.overlapped & (plan.held > 0.0)
    return (
        np.where(holds, np.max(ahead_s, axis=0), forward_s),
        np.where(holds, np.max(back_s, axis=0) + waited_s, backward_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadStep:
    """Seconds of a training step by phase, and its total work; every field is (n,)."""

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
    """Return the seconds of a training step by phase, with the bytes that it moves.

    Each batch passes forward and backward, then the optimizer runs. With overlap, a phase takes
    about as long as its slowest resource. An overlapped optimizer runs within the last batch's
    backward pass.

    Source:
        Rajbhandari et al.: ZeRO-Infinity, 2021, section 6.2 (transfers under computation); Liao et
        al.: Fuyou, 2024, section 3 (the optimizer under the backward pass).
    """
    ahead, back, update = forward(plan), backward(plan), optimizer(plan)
    together = plan.overlapped
    forward_s, backward_s = _passes_s(plan, node, ahead, back)
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
