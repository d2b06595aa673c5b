"""DRAM traffic of a training step in which sub-batches pass through groups of blocks.

A group processes as many samples at a time as its largest block can hold in the buffer, and its
activations stay there until the group is done. They are still written once for the backward pass,
and the weights are read for every sub-batch. A block of which not even one sample fits runs
conventionally, and separates the groups before and after it.

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
"""Layer by layer; layer by layer with fused normalizations; or sub-batches through groups."""

_NORM_PASSES = np.array([NORM_PASSES, FUSED_NORM_PASSES, NORM_PASSES])


@dataclass(frozen=True, slots=True, kw_only=True)
class SerializationPlan:
    """Schedule of a training step of b blocks in n designs; ``starts`` is (b, n), the rest (n,)."""

    starts: Mask
    """True where a group begins."""
    schedule: Floats
    """Code in :data:`SCHEDULES`."""
    buffer_bytes: Floats
    samples: Floats
    """Batch size."""
    gradient_bytes: Floats
    """Bytes per element of the weight gradient, which sub-batches accumulate in DRAM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTraffic:
    """DRAM traffic of each block, (b, n), by kind, and the resulting sub-batches and groups."""

    activation_bytes: Floats
    weight_bytes: Floats
    crossing_bytes: Floats
    """Bytes between groups, beyond those that the blocks themselves write and read."""
    sub_batch: Floats
    """Samples at a time; the entire batch in a block that is not serialised."""
    starts: Mask
    """True where a group begins, including groups separated by spilled blocks."""
    spilled: Mask
    """True where a block was to be serialised, but not even one sample fits."""

    @property
    def bytes(self) -> Floats:
        return self.activation_bytes + self.weight_bytes + self.crossing_bytes


def traffic(prints: Footprints, plan: SerializationPlan) -> BlockTraffic:
    """Compute the DRAM traffic of each of b blocks in n designs, (b, n) by kind."""
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
    """Return how often each block's input crosses to or from DRAM at group boundaries, (b, n).

    These transfers are not included in the blocks' own traffic.

    Between groups there are three: the input is read, its gradient written and read. From a
    conventional block to a group there is one, as the conventional block's traffic includes the
    others. From a group to a conventional block there are two: the input is written and its
    gradient read. The network's input has none: it has no gradient and is not written.
    """
    new_group = np.where(before, 3.0, 1.0)
    passes = np.where(serial, np.where(starts, new_group, 0.0), np.where(before, 2.0, 0.0))
    passes[0] = 0.0
    return passes


def _sub_batches(prints: Footprints, plan: SerializationPlan, starts: Mask) -> Floats:
    """Return the sub-batch size of each block's group, in samples, (b, n).

    It is the number of samples for which the group's largest block fits in the buffer.
    """
    most = np.broadcast_to(prints.need, starts.shape).copy()
    for row in range(1, len(most)):
        most[row] = np.where(starts[row], most[row], np.maximum(most[row], most[row - 1]))
    for row in range(len(most) - 2, -1, -1):
        most[row] = np.where(starts[row + 1], most[row], most[row + 1])
    return np.clip(np.floor(plan.buffer_bytes / most), 1.0, plan.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Partition of a chain of blocks into groups: where groups begin, and the total cost."""

    places: tuple[int, ...]
    cost: float


def best_cuts(
    prices: Floats,  # (b, b): cost of the group from the first block to the last, inclusive
) -> Cuts:
    """Find the partition of a chain of blocks into groups with the least total cost.

    Uses dynamic programming over the blocks from the last one: exact, since a group's cost does not
    depend on the other groups. Of equally good partitions, the one with the longest first groups is
    returned.
    """
    count = len(prices)
    least = np.zeros(count + 1)
    ends = [0] * count
    for first in range(count - 1, -1, -1):
        totals = prices[first, first:] + least[first + 1 :]
        last = len(totals) - 1 - int(np.argmin(totals[::-1]))
        least[first], ends[first] = totals[last], first + last
    places, block = list[int](), ends[0] + 1
    while block < count:
        places.append(block)
        block = ends[block] + 1
    return Cuts(places=tuple(places), cost=float(least[0]))


def every_group(count: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last block of each possible group in a chain of ``count`` blocks."""
    return tuple((first, last) for first in range(count) for last in range(first, count))
