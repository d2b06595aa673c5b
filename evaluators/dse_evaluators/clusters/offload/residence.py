"""Bytes of a training step on the GPU, in its host's memory and on its disks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.offload.data_placement import (
    CPU,
    GPU,
    NVME,
    OPTIMIZER_BYTES,
    WORD_BYTES,
    OffloadPlan,
)

_CHECKPOINT_BYTES, _LAYER_BYTES = 2.0, 34.0
"""Bytes per token and unit of width: a layer's input, and all activations of its backward pass.

Korthikanti et al.: Reducing Activation Recomputation in Large Transformer Models, 2022, equation 1
without the attention scores, which a fused kernel never writes.
"""

_LOGIT_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGpu:
    """Bytes on n GPUs by use: weights, gradients, optimizer state, activations; each (n,)."""

    weights: Floats
    gradients: Floats
    optimizer: Floats
    activations: Floats
    logits: Floats

    @property
    def total(self) -> Floats:
        states = self.weights + self.gradients + self.optimizer
        return states + self.activations + self.logits


def states(plan: OffloadPlan) -> tuple[Floats, Floats, Floats]:
    """Return the bytes of training state on GPU, CPU and NVMe, (n,) each.

    The state is weights, gradients and optimizer state.

    Source:
        Rajbhandari et al.: ZeRO, 2020, section 3.1: 16 bytes a weight on the GPU.
    """
    gpu, cpu, nvme = (_states_at(plan, place) for place in (GPU, CPU, NVME))
    return gpu, cpu, nvme


def kept_activations(plan: OffloadPlan) -> Floats:
    """Return the bytes of 16-bit activations that are kept for the backward pass, (n,)."""
    between = _LAYER_BYTES - _CHECKPOINT_BYTES
    a_layer = _CHECKPOINT_BYTES / plan.checkpoint_interval + between * plan.kept
    return plan.tokens * plan.hidden * plan.layers * a_layer


def moved_activations(plan: OffloadPlan) -> Floats:
    """Return the bytes of kept activations that leave the GPU; 0 where they stay, (n,)."""
    left = 1.0 - plan.held / plan.layers
    on_the_wire = kept_activations(plan) * (plan.wire_bytes / WORD_BYTES) * left
    return np.where(plan.activations_at == GPU, 0.0, on_the_wire)


def on_gpu(plan: OffloadPlan) -> OnGpu:
    """Return the GPU's peak memory use [bytes], split by kind of data.

    Source:
        Rajbhandari et al.: ZeRO-Infinity, 2021, section 3 (working memory of a layer and of a
        checkpointed segment); Korthikanti et al., 2022, equations 1 and 4.
    """
    count, word = plan.parameters, WORD_BYTES * plan.block
    elsewhere = plan.weights_at != GPU
    passing = np.minimum(plan.moving, plan.layers - plan.resident) * word
    stay = plan.keeps_gradients & (plan.gradients_at == GPU)
    away = plan.activations_at != GPU
    remade = plan.checkpoint_interval * (1.0 - plan.kept)
    # The layer in use is one of those that are held, as long as they are there.
    arriving = plan.kept * np.where(away, np.maximum(plan.moving, plan.held + 1.0), 1.0)
    working = plan.tokens * plan.hidden * _LAYER_BYTES * (remade + arriving)
    marks = _CHECKPOINT_BYTES / plan.checkpoint_interval * (1.0 - plan.kept) * plan.held
    working = working + plan.tokens * plan.hidden * marks
    return OnGpu(
        weights=WORD_BYTES * count * (1.0 - plan.streamed) + np.where(elsewhere, passing, 0.0),
        gradients=np.where(stay, WORD_BYTES * count, plan.moving * word),
        optimizer=np.where(plan.optimizer_at == GPU, OPTIMIZER_BYTES * count, 0.0),
        activations=working + np.where(away, 0.0, kept_activations(plan)),
        logits=_LOGIT_BYTES * plan.tokens * plan.vocabulary,
    )


def on_cpu(plan: OffloadPlan) -> Floats:
    """Return the bytes in host memory, (n,): data stored there, and buffers for transfers."""
    kept = _states_at(plan, CPU) + _activations_at(plan, CPU)
    taken = np.where(plan.keeps_gradients | (plan.runs_at == GPU), 0.0, plan.wire_bytes)
    through = np.where(plan.weights_at == NVME, plan.wire_bytes, 0.0) + taken
    through += np.where(plan.gradients_at == NVME, plan.wire_bytes, 0.0)
    through += np.where(plan.optimizer_at == NVME, OPTIMIZER_BYTES, 0.0)
    a_layer = _activations_at(plan, NVME) / plan.layers
    return kept + plan.moving * (plan.block * through + a_layer)


def on_nvme(plan: OffloadPlan) -> Floats:
    """Return the bytes stored on the disks (NVMe), (n,)."""
    return _states_at(plan, NVME) + _activations_at(plan, NVME)


def _states_at(plan: OffloadPlan, place: float) -> Floats:
    count = plan.parameters
    word = WORD_BYTES if place == GPU else plan.wire_bytes
    share = np.where(plan.weights_at == place, plan.streamed, 0.0)
    if place == GPU:
        share = 1.0 - plan.streamed
    keeps = plan.keeps_gradients & (plan.gradients_at == place)
    states = word * count * share + np.where(keeps, word * count, 0.0)
    return states + np.where(plan.optimizer_at == place, OPTIMIZER_BYTES * count, 0.0)


def _activations_at(plan: OffloadPlan, place: float) -> Floats:
    return np.where(plan.activations_at == place, moved_activations(plan), 0.0)
