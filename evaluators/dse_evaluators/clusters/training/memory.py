"""Memory that a training step uses on its fullest device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.training.activations import ActivationMemory, activations
from dse_evaluators.clusters.training.plan import OFFLOADED, TrainingPlan
from dse_evaluators.clusters.training.state import ModelState, block_weights

__all__ = ["TrainingMemoryUse", "block_weights", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemoryUse:
    """Bytes on the fullest device; every field is (n,)."""

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
    """Compute the memory use on the fullest device by part.

    If weights are kept elsewhere (ZeRO 3, or offload to the host), the device buffers two layers:
    the one that is computed and the one that is fetched.

    Args:
        plan: the layouts.
        state: model state of a device, in its own memory or its host's.
        kept: activations of one microbatch.

    Source:
        Rajbhandari et al.: ZeRO-Infinity, 2021, section 5 (offload to the host).
    """
    away = plan.offload >= OFFLOADED.index("optimizer+weights")
    far = plan.offload >= OFFLOADED.index("optimizer")
    passing = np.where(away | (plan.zero >= 3), 2.0 / state.layers, 0.0)
    weights = np.where(away, 0.0, state.weights_bytes) + state.whole_bytes * passing
    return TrainingMemoryUse(
        weights=np.minimum(weights, state.whole_bytes),
        gradients=state.gradients_bytes,
        optimizer=np.where(far, 0.0, state.optimizer_bytes),
        activations=activations(plan, kept, layers=state.layers, spared=state.spared),
        host=np.where(away, state.weights_bytes, 0.0) + np.where(far, state.optimizer_bytes, 0.0),
    )
