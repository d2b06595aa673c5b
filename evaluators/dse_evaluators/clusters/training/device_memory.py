"""Memory that a training step uses on its fullest device, and faults of plans that exceed it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats, Mask
from dse_evaluators.clusters.training.activations import ActivationMemory, activations
from dse_evaluators.clusters.training.model_state import ModelState, block_weights
from dse_evaluators.clusters.training.training_plan import OFFLOADED, TrainingPlan

__all__ = ["TrainingMemoryUse", "block_weights", "memory"]

_GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemoryUse:
    """Bytes on the fullest device by kind of data; every field is (n,)."""

    weights: Floats
    gradients: Floats
    optimizer: Floats
    activations: Floats
    host: Floats
    """Bytes in the device's share of the host's memory; not part of ``total``."""

    @property
    def total(self) -> Floats:
        return self.weights + self.gradients + self.optimizer + self.activations


def memory(plan: TrainingPlan, state: ModelState, kept: ActivationMemory) -> TrainingMemoryUse:
    """Compute the memory use on the fullest device by kind of data, in bytes, (n,).

    If weights are kept elsewhere (ZeRO 3, or offload to the host), the device buffers the weights
    of two layers: one that is computed and one that is fetched. If gradients are offloaded, it
    buffers the gradients of two layers, too. Offloaded optimizer state passes through the device,
    which buffers that of two layers. A second copy of weights for backward passes is sharded within
    its group.

    Args:
        plan: the parallel layouts.
        state: model state of a device, in its own memory or its host's.
        kept: activations of one microbatch.

    Source:
        Rajbhandari et al.: ZeRO-Infinity, 2021, section 5 (offload to the host); Ren et al.:
        ZeRO-Offload, 2021, section 4 (gradients in the host, too); Wang et al.: ZeRO++, 2023,
        section 3.2 (the second copy).
    """
    away, gone = plan.offloads_weights, plan.offloads_gradients
    far = plan.offload >= OFFLOADED.index("optimizer")
    passing = np.where(away | (plan.zero >= 3), 2.0 / state.layers, 0.0)
    weights = np.where(away, 0.0, state.weights_bytes) + state.whole_bytes * passing
    weights = np.minimum(weights, state.whole_bytes)
    if (second := plan.secondary_group).any():
        weights = weights + np.where(second > 0, state.whole_bytes / np.maximum(second, 1.0), 0.0)
    return TrainingMemoryUse(
        weights=weights,
        gradients=np.where(gone, state.passing_gradients_bytes, state.gradients_bytes),
        optimizer=state.optimizer_bytes * np.where(far, np.minimum(2.0 / state.layers, 1.0), 1.0),
        activations=activations(plan, kept, layers=state.layers, spared=state.spared),
        host=np.where(away, state.weights_bytes, 0.0)
        + np.where(gone, state.gradients_bytes, 0.0)
        + np.where(far, state.optimizer_bytes, 0.0),
    )


def too_large(
    kept: TrainingMemoryUse, possible: Mask, *, device_bytes: float, host_bytes: float
) -> dict[int, Failure]:
    """Return the reason of infeasibility of each plan that exceeds device or host memory.

    Args:
        kept: memory use of the plans.
        possible: mask of the plans to check, which violate no other constraint, (n,).
        device_bytes: usable bytes of a device.
        host_bytes: bytes of a device's share of its host.
    """
    return {
        **_over(kept.host, host_bytes, possible, "in a device's share of its host"),
        **_over(kept.total, device_bytes, possible, "of memory"),
    }


def _over(needed: Floats, room: float, possible: Mask, what: str) -> dict[int, Failure]:
    rows = np.flatnonzero((needed > room) & possible)
    if not rows.size:
        return {}
    has = room / _GIB
    # Rows equal to three digits share a fault: formatting texts costs more than the model itself.
    size = needed[rows] / _GIB
    digit = 10.0 ** np.maximum(np.floor(np.log10(size)) - 2.0, -1.0)
    known = (np.ceil(size / digit) * digit).tolist()
    failures = {
        needs: Failure(
            kind="infeasible",
            reason=f"needs {needs:.1f} GiB {what}, has {has:.1f} GiB: {needs - has:.1f} GiB short",
        )
        for needs in set(known)
    }
    return dict(zip(rows.tolist(), map(failures.__getitem__, known), strict=True))
