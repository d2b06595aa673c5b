"""Parallel layout of a training step over devices."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from dse.core.batch import Distinct
from dse.core.values import Floats, Mask
from dse_evaluators.clusters.training.kernels import OPERAND_BYTES
from dse_evaluators.workloads.transformer_configs import Transformer

RECOMPUTED = ("none", "selective", "full")
"""Recomputation of a layer in the backward pass: nothing, the attention core, or everything."""

SCHEDULES = ("1f1b", "zero_bubble", "zero_bubble_2x", "dualpipe", "dualpipe_v")
"""Pipeline schedules: 1F1B; ZB-H1 with the memory of 1F1B; ZB-H2 with twice that memory; DualPipe,
with microbatches from both ends through two copies of the weights; DualPipeV, with two stages on
each device, the first and the last on the same one."""

_COPIES, _CHUNKS = np.array([1.0, 1.0, 1.0, 2.0, 1.0]), np.array([1.0, 1.0, 1.0, 1.0, 2.0])
"""Copies of the weights in a pipeline, and stages of a copy on each device, by schedule."""

OFFLOADED = (
    "none",
    "optimizer",
    "optimizer+weights",
    "gradients+optimizer",
    "gradients+optimizer+weights",
)
"""State of a device that is kept in the memory of its host."""

_GRADIENTS_AWAY, _WEIGHTS_AWAY = (
    np.array([part in choice.split("+") for choice in OFFLOADED])
    for part in ("gradients", "weights")
)

ACTIVATION_FORMATS = ("bf16", "fp8")
_ACTIVATION_BYTES = np.array([2.0, 1.0])
"""Bytes of an activation that is kept or sent in each of ACTIVATION_FORMATS."""

GRADIENT_FORMATS = ("fp32", "bf16", "fp8")
GRADIENT_BYTES = np.array([4.0, 2.0, 1.0])
"""Bytes of a gradient that is accumulated and reduced in each of GRADIENT_FORMATS."""


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # Any: a field of whatever type


_Record = TypeVar("_Record", bound=_Dataclass)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """Training job: a model on sequences of a fixed number of tokens.

    ``fused`` attention writes no scores to memory, and skips those that the causal mask excludes.
    The busiest expert has ``imbalance`` times the mean number of tokens.
    """

    model: Transformer
    sequence: int
    fused: bool
    imbalance: float = 1.0
    uneven: bool = False
    """Whether stages may have one layer more than others, and interleaved schedules any number of
    microbatches."""
    split_messages: bool = True
    """Whether each of the tensor-parallel devices sends a part of a message between stages."""


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Parallel layouts of n training steps; every field is (n,)."""

    tensor: Floats
    """Degree of tensor parallelism."""
    pipeline: Floats
    """Degree of pipeline parallelism."""
    data: Floats
    """Degree of data parallelism."""
    microbatch: Floats
    """Sequences of one microbatch."""
    interleave: Floats
    """Stages of the pipeline on each device."""
    sequence_parallel: Mask
    recompute: Floats
    """Index into RECOMPUTED."""
    zero: Floats
    """ZeRO stage: 0 shards nothing among replicas, 3 everything."""
    zero_group: Floats
    """Replicas among which ZeRO shards; 0: all."""
    secondary_group: Floats
    """Replicas among which ZeRO 3 keeps a second copy of weights, for backward passes; 0: none."""
    quantized_weights: Mask
    """Whether ZeRO 3 sends weights in 8 bits."""
    global_batch: Floats
    """Sequences of a step."""
    context: Floats
    """Degree of context parallelism: devices among which each sequence is split."""
    expert: Floats
    """Degree of expert parallelism: replicas over which the experts are split."""
    schedule: Floats
    """Index into SCHEDULES."""
    number_format: Floats
    """Index into FORMATS."""
    offload: Floats
    """Index into OFFLOADED."""
    gradient_format: Floats
    """Index into GRADIENT_FORMATS."""
    activation_format: Floats
    """Index into ACTIVATION_FORMATS."""
    overlap: Mask
    """Whether communication between replicas overlaps with compute."""
    overlap_experts: Mask
    """Whether all-to-alls of experts overlap with the compute of another microbatch."""

    def take(self, among: Distinct) -> TrainingPlan:
        """Return one plan of each group of equal plans."""
        if among.place is None:
            return self
        return TrainingPlan(
            **{one.name: getattr(self, one.name)[among.rows] for one in fields(self)}
        )

    @cached_property
    def replicas(self) -> Floats:
        """Number of data-parallel pipelines, times the devices that divide a sequence, (n,)."""
        return self.data * self.context

    @cached_property
    def copies(self) -> Floats:
        """Number of copies of the weights in a pipeline, (n,)."""
        return _COPIES[self.schedule.astype(np.intp)]

    @cached_property
    def chunks(self) -> Floats:
        """Number of pipeline stages of one weight copy on each device, (n,)."""
        return _CHUNKS[self.schedule.astype(np.intp)]

    @cached_property
    def joins_ends(self) -> Mask:
        """Whether one device has the first and the last stage, (n,)."""
        return (self.pipeline == 1) | (self.schedule >= SCHEDULES.index("dualpipe"))

    @cached_property
    def holders(self) -> Floats:
        """Number of devices that hold the same weights and average their gradients, (n,)."""
        return self.replicas * self.copies

    @cached_property
    def shards(self) -> Floats:
        """Number of devices among which ZeRO shards the training state, (n,)."""
        return np.where(self.zero_group > 0, self.zero_group, self.holders)

    @cached_property
    def expert_replicas(self) -> Floats:
        """Number of devices that hold the same experts, (n,)."""
        return np.maximum(self.holders / self.expert, 1.0)

    @cached_property
    def expert_shards(self) -> Floats:
        """Number of devices among which ZeRO shards the experts, (n,)."""
        return np.where(self.expert > 1, self.expert_replicas, self.shards)

    @cached_property
    def devices(self) -> Floats:
        return self.tensor * self.pipeline * self.replicas

    @cached_property
    def microbatches(self) -> Floats:
        """Number of microbatches of each replica per step, (n,)."""
        return self.global_batch / (self.data * self.microbatch)

    @cached_property
    def word_bytes(self) -> Floats:
        """Bytes of an activation that is kept, or sent between devices, (n,)."""
        return _ACTIVATION_BYTES[self.activation_format.astype(np.intp)]

    @cached_property
    def gradient_bytes(self) -> Floats:
        """Bytes of a gradient, (n,)."""
        return GRADIENT_BYTES[self.gradient_format.astype(np.intp)]

    @cached_property
    def offloads_gradients(self) -> Mask:
        """Whether gradients are kept in the host, (n,)."""
        return _GRADIENTS_AWAY[self.offload.astype(np.intp)]

    @cached_property
    def offloads_weights(self) -> Mask:
        """Whether weights are kept in the host, (n,)."""
        return _WEIGHTS_AWAY[self.offload.astype(np.intp)]

    @cached_property
    def operand_bytes(self) -> Floats:
        """Bytes of one element of a GEMM operand, (n,)."""
        return OPERAND_BYTES[self.number_format.astype(np.intp)]

    def tokens(self, sequence: int) -> Floats:
        """Return the number of tokens of a microbatch on one device, (n,)."""
        return self.microbatch * sequence / self.context


def spread(one: _Record, among: Distinct) -> _Record:
    """Expand a dataclass of arrays over distinct plans to arrays over all n plans, (n,)."""
    if among.place is None:
        return one
    found = {each.name: among.spread(getattr(one, each.name)) for each in fields(one)}
    return type(one)(**found)
