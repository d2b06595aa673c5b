"""Time of a training step split into compute, communication, bubble, offload, optimizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.training.kernels import Chip
from dse_evaluators.clusters.training.layer import LayerTime
from dse_evaluators.clusters.training.model_state import ModelState
from dse_evaluators.clusters.training.replicas import ReplicaCommunication
from dse_evaluators.clusters.training.training_plan import SCHEDULES, TrainingPlan

PARTS = (
    "compute",
    "recompute",
    "tensor",
    "context",
    "expert",
    "bubble",
    "pipeline",
    "data",
    "offload",
    "optimizer",
)
EXPOSED = ("tensor", "context", "expert", "pipeline", "data", "offload")
"""Parts in which devices wait for communication."""

_UPDATE_BYTES = 26.0
"""Bytes moved by Adam per weight besides the gradient, which is read.

Moments and master copy are read and written, the weight is written.
"""

_BACKWARD_MOVED = 1.5
"""Data that kernels move in the backward pass over those of the forward pass."""

_SPARED = np.array([0.0, 2.0, 3.0, 3.0, 3.0])
"""Weight-gradient computations that fill the pipeline bubble per stage, for each of SCHEDULES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Properties of a machine that options state and no measurement gives.

    ``host_bytes_per_s`` is the bandwidth between a device and its host in each direction;
    ``overlap_tax`` is the fraction of its compute rate that a device loses during communication;
    with ``streams_optimizer`` offloaded optimizer state passes through the device in every backward
    pass, not once in the update.
    """

    host_bytes_per_s: float
    overlap_tax: float
    streams_optimizer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Inputs of a training step besides layer time: model state, communication, messages."""

    state: ModelState
    replicas: ReplicaCommunication
    passed_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """Seconds of n training steps, split by cause; every field is (n,).

    The causes are those of PARTS.
    """

    compute_s: Floats
    recompute_s: Floats
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    bubble_s: Floats
    pipeline_s: Floats
    data_s: Floats
    offload_s: Floats
    optimizer_s: Floats


def step(
    plan: TrainingPlan, one: LayerTime, rest: Rest, *, chip: Chip, habits: Habits
) -> TrainingStep:
    """Compute the seconds of a training step by cause, from those of one layer and microbatch.

    The last stage, which has the LM head, is the slowest unless it has one layer less, and limits
    the rate of all microbatches. Every device waits once for the pipeline to fill and to drain.
    Interleaving shortens this bubble and sends more messages, but waits for microbatches that a
    full round over the stages lacks; zero-bubble schedules compute weight gradients in the bubble.
    DualPipe enters microbatches at both ends, and hides messages between stages as well.

    Args:
        plan: the n parallel layouts.
        one: seconds of one layer for one microbatch.
        rest: model state, replica communication, and messages between stages.
        chip: roofline constants of the device for 16-bit formats.
        habits: host bandwidth and overlap tax.

    Source:
        Narayanan et al.: Efficient Large-Scale Language Model Training on GPU Clusters Using
        Megatron-LM, 2021, section 2.2 (bubble, messages) and 3.2; Qi et al.: Zero Bubble Pipeline
        Parallelism, 2023, table 2 (ZB-H1, ZB-H2); DeepSeek-AI: DeepSeek-V3, 2024, table 2 and
        section 3.2.1 (DualPipe); deepseek-ai/DualPipe, README (DualPipeV).
    """
    count, layers = plan.microbatches, rest.state.layers
    pass_s = one.compute_s + one.recompute_s + one.tensor_s + one.context_s + one.expert_s
    spared_s = _SPARED[plan.schedule.astype(np.intp)] * one.weights_s
    streamed_s = _streamed_s(plan, rest.state, one, habits)
    missing = np.ceil(count / plan.pipeline) * plan.pipeline - count
    idle = rest.state.elsewhere + (plan.interleave - 1.0) * missing * layers
    stages = np.where(plan.pipeline > 1, 2.0 * plan.interleave * plan.chunks, 0.0)
    passed_s = count * stages * rest.passed_s
    dual = plan.schedule >= SCHEDULES.index("dualpipe")
    if dual.any():
        # PP / 2 - 1 stages of both passes, which overlap, and another backward pass
        ahead = np.maximum(plan.chunks * plan.pipeline / 2.0 - 1.0, 0.0)
        idle = np.where(dual, ahead * layers / plan.chunks, idle)
        spared_s = spared_s - np.where(dual, one.backward_s, 0.0)
        hidden_s = np.maximum(habits.overlap_tax * passed_s, passed_s - count * layers * pass_s)
        passed_s = np.where(dual, hidden_s, passed_s)
    every = count * layers
    optimizer_s = chip.passes_s((_UPDATE_BYTES + plan.gradient_bytes) * rest.state.updated)
    late_s = np.where(rest.state.spared > 0, np.maximum(one.head_s - pass_s, 0.0), one.head_s)
    data_s = _data_s(plan, rest, habits, layers=layers, pass_s=layers * pass_s, one=one)
    # The link to the host is separate from the links between replicas: both may be busy at once.
    busy_s = every * pass_s + np.where(plan.overlap, data_s, 0.0)
    return TrainingStep(
        compute_s=every * one.compute_s + count / plan.copies * late_s,
        recompute_s=every * one.recompute_s,
        tensor_s=every * one.tensor_s,
        context_s=every * one.context_s,
        expert_s=every * one.expert_s,
        bubble_s=idle / plan.interleave * (np.maximum(pass_s - spared_s, 0.0) + streamed_s),
        pipeline_s=passed_s,
        data_s=data_s,
        offload_s=every * streamed_s
        if habits.streams_optimizer
        else _offload_s(plan, rest.state, optimizer_s, busy_s, habits),
        optimizer_s=optimizer_s,
    )


def _data_s(
    plan: TrainingPlan,
    rest: Rest,
    habits: Habits,
    *,
    layers: Floats,
    pass_s: Floats,
    one: LayerTime,
) -> Floats:
    """Return the seconds that replica communication adds to a step after overlap, (n,).

    Gradients that are reduced once overlap with the last backward pass, and with ZeRO 1 the weights
    with the next forward pass; from stage 2 on communication overlaps with all passes. During
    overlap compute loses the overlap tax; the communication of one layer is never hidden.

    Source:
        Isaev et al.: Calculon, SC 2023, section 3 (processor usage of communication).
    """
    all_s = rest.replicas.step_s(plan)
    often = np.where(plan.zero >= 2, plan.microbatches, 1.0)
    behind_s = np.where(plan.zero >= 1, often * pass_s, layers * one.backward_s)
    least_s = np.maximum(habits.overlap_tax, 1.0 / (layers * often)) * all_s
    return np.where(plan.overlap, np.maximum(least_s, all_s - behind_s), all_s)


def _offload_s(
    plan: TrainingPlan, state: ModelState, optimizer_s: Floats, busy_s: Floats, habits: Habits
) -> Floats:
    """Return the seconds of host transfers in a step that compute does not hide, (n,).

    Optimizer state is read and written back during the weight update. Weights are fetched for both
    passes of each microbatch, overlapped with compute, and written back once. Gradients are sent
    for each microbatch, overlapped likewise, added up in the host, and read for the update.

    Source:
        Rajbhandari et al.: ZeRO-Infinity, SC 2021, section 5; Ren et al.: ZeRO-Offload, 2021,
        section 4; here the devices update the streamed state, not the host's processor.
    """
    if not plan.offload.any():
        return np.zeros_like(busy_s)
    weights_bytes = np.where(plan.offloads_weights, state.weights_bytes, 0.0)
    gradients_bytes = np.where(plan.offloads_gradients, state.gradients_bytes, 0.0)
    gone = state.optimizer_bytes + weights_bytes + gradients_bytes
    updating_s = np.maximum(gone / habits.host_bytes_per_s - optimizer_s, 0.0)
    # The link sends in both directions at once.
    passed_s = plan.microbatches * np.maximum(2.0 * weights_bytes, gradients_bytes)
    late_s = np.maximum(passed_s / habits.host_bytes_per_s - busy_s, 0.0)
    return np.where(plan.offload > 0, updating_s + late_s, 0.0)


def _streamed_s(
    plan: TrainingPlan, state: ModelState, one: LayerTime, habits: Habits
) -> Floats | float:
    """Return the seconds by which host transfers prolong a layer and microbatch if they stream.

    Weights are fetched for the forward pass, weights and optimizer state for the backward pass of
    every microbatch. They hide behind products and messages, not behind kernels that move data.

    Source:
        Isaev et al.: Calculon, SC 2023, section 3 (a second tier of memory).
    """
    if not (habits.streams_optimizer and plan.offload.any()):
        return 0.0
    weights_bytes = np.where(plan.offloads_weights, state.weights_bytes, 0.0)
    all_bytes = weights_bytes + np.where(plan.offload > 0, state.optimizer_bytes, 0.0)
    forward_s, backward_s = (
        sent / state.layers / habits.host_bytes_per_s for sent in (weights_bytes, all_bytes)
    )
    pass_s = one.compute_s + one.recompute_s + one.tensor_s + one.context_s + one.expert_s
    beside_s = pass_s - one.backward_s - one.moved_s
    behind_s = one.backward_s - _BACKWARD_MOVED * one.moved_s
    return np.maximum(forward_s - beside_s, 0.0) + np.maximum(backward_s - behind_s, 0.0)
