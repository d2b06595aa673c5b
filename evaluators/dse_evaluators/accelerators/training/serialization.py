"""DRAM traffic of a training step in which sub-batches pass through groups of blocks.

A group takes as many samples at a time as its hungriest block can hold in the buffer, and its
activations stay there until the group is done. They are still written once for the backward pass,
and the weights are read for every sub-batch. A block of which not one sample fits is run as it
would be without the scheme, and parts the groups before and after it.

Source:
    As :mod:`.block_footprints`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask, Value
from dse_evaluators.accelerators.training.block_footprints import (
    FUSED_NORM_PASSES,
    NORM_PASSES,
    Footprints,
)
from dse_evaluators.accelerators.training.split_arrays import WORD_BYTES

SCHEDULES: Mapping[Value, float] = {"conventional": 0.0, "fused-norm": 1.0, "serialised": 2.0}
"""Layer by layer; so with the fewest passes of normalisations; or sub-batches through groups."""

_NORM_PASSES = np.array([NORM_PASSES, FUSED_NORM_PASSES, NORM_PASSES])


@dataclass(frozen=True, slots=True, kw_only=True)
class SerializationPlan:
    """Cuts of a chain of b blocks by n designs; ``starts`` is (b, n), the rest (n,)."""

    starts: Mask
    """True where a group begins."""
    schedule: Floats
    """The code in :data:`SCHEDULES`."""
    buffer_bytes: Floats
    samples: Floats
    gradient_bytes: Floats
    """Of one number of the weights' gradient, which sub-batches add up in DRAM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTraffic:
    """Traffic of each block, (b, n), by kind, and the portions in which it moves."""

    activation_bytes: Floats
    weight_bytes: Floats
    crossing_bytes: Floats
    """Between groups, beyond what the blocks themselves write and read."""
    sub_batch: Floats
    """Samples at a time; all of them in a block that is not serialised."""
    starts: Mask
    """Where a group begins, as it came out."""
    spilled: Mask
    """Blocks that were to be serialised, and of which not one sample fits."""

    @property
    def bytes(self) -> Floats:
        return self.activation_bytes + self.weight_bytes + self.crossing_bytes


def traffic(prints: Footprints, plan: SerializationPlan) -> BlockTraffic:
    """Compute the traffic of each block of n designs through DRAM."""
    wanted = plan.schedule == SCHEDULES["serialised"]
    serial = wanted & (prints.need <= plan.buffer_bytes)  # (b, n)
    before = np.concatenate([np.zeros_like(serial[:1]), serial[:-1]])
    starts = wanted & (plan.starts | (serial != before))
    sub_batch = np.where(serial, _sub_batches(prints, plan, starts), plan.samples)
    turns = np.ceil(plan.samples / sub_batch)
    norms = _NORM_PASSES[plan.schedule.astype(np.intp)]
    conventional = prints.plain + norms * prints.outputs
    gradient = prints.weights / WORD_BYTES * plan.gradient_bytes
    return BlockTraffic(
        activation_bytes=np.where(serial, prints.stored, conventional) * plan.samples,
        weight_bytes=(prints.weights + prints.returned) * turns + gradient * (2.0 * turns - 1.0),
        crossing_bytes=_crossings(serial, before, starts) * prints.input * plan.samples,
        sub_batch=sub_batch,
        starts=starts,
        spilled=wanted & ~serial,
    )


def _crossings(serial: Mask, before: Mask, starts: Mask) -> Floats:
    """Return how often a block's input passes DRAM beyond its own schedule's count, (b, n).

    From group to group it is read, its gradient written and read. After a conventional block it
    needs no more writing, and its gradient is read there already; before one, it is written and
    its gradient read here. Of what the network reads there is no gradient, and nothing to write.
    """
    new_group = np.where(before, 3.0, 1.0)
    passes = np.where(serial, np.where(starts, new_group, 0.0), np.where(before, 2.0, 0.0))
    passes[0] = 0.0
    return passes


def _sub_batches(prints: Footprints, plan: SerializationPlan, starts: Mask) -> Floats:
    """Samples of which the hungriest block of each group holds all that it needs, (b, n)."""
    most = np.broadcast_to(prints.need, starts.shape).copy()
    for row in range(1, len(most)):
        most[row] = np.where(starts[row], most[row], np.maximum(most[row], most[row - 1]))
    for row in range(len(most) - 2, -1, -1):
        most[row] = np.where(starts[row + 1], most[row], most[row + 1])
    return np.clip(np.floor(plan.buffer_bytes / most), 1.0, plan.samples)
