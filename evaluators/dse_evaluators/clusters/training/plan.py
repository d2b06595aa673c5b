"""Layout of a training step over devices."""

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
"""What of a layer is computed again in the backward pass: nothing, attention's core, all of it."""

SCHEDULES = ("1f1b", "zero_bubble", "zero_bubble_2x")
"""One forward, one backward; ZB-H1, which holds as much; ZB-H2, which holds twice as much."""

OFFLOADED = ("none", "optimizer", "optimizer+weights")
"""What of a device's state is in the memory of its host."""


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # Any: a field of whatever type


_Record = TypeVar("_Record", bound=_Dataclass)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """Training job: a model on sequences of a fixed number of tokens.

    With ``fused`` attention its scores are never written, and passes over none that a mask leaves
    out. The busiest expert has ``imbalance`` times the mean of tokens.
    """

    model: Transformer
    sequence: int
    fused: bool
    imbalance: float = 1.0


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
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
    context: Floats
    """Devices among which each sequence is cut."""
    expert: Floats
    """Of the replicas, those among which the experts are dealt out."""
    schedule: Floats
    """The place among SCHEDULES."""
    number_format: Floats
    """The place among FORMATS."""
    offload: Floats
    """The place among OFFLOADED."""
    overlap: Mask
    """True where replicas tell one another while they compute."""

    def take(self, among: Distinct) -> TrainingPlan:
        """One plan of each that are alike."""
        if among.place is None:
            return self
        return TrainingPlan(
            **{one.name: getattr(self, one.name)[among.rows] for one in fields(self)}
        )

    @cached_property
    def replicas(self) -> Floats:
        """Devices that hold the same weights."""
        return self.data * self.context

    @cached_property
    def expert_replicas(self) -> Floats:
        """Devices that hold the same experts."""
        return np.maximum(self.replicas / self.expert, 1.0)

    @cached_property
    def devices(self) -> Floats:
        return self.tensor * self.pipeline * self.replicas

    @cached_property
    def microbatches(self) -> Floats:
        """Of each replica and step."""
        return self.global_batch / (self.data * self.microbatch)

    @cached_property
    def operand_bytes(self) -> Floats:
        """Of a number that enters a product."""
        return OPERAND_BYTES[self.number_format.astype(np.intp)]

    def tokens(self, sequence: int) -> Floats:
        """Of a microbatch on one device."""
        return self.microbatch * sequence / self.context


def spread(one: _Record, among: Distinct) -> _Record:
    """A record of what was found for plans that differ, for all that are like them."""
    if among.place is None:
        return one
    found = {each.name: among.spread(getattr(one, each.name)) for each in fields(one)}
    return type(one)(**found)
