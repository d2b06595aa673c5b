"""Energy, time and traffic of a training step by the kind of memory for its activations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.grouped.grouped_convolution import sum_layers
from dse_evaluators.accelerators.lifetimes.memory_kinds import KINDS, SRAM
from dse_evaluators.alike import infeasible

PARTS = ("mac", "access", "refresh", "leakage", "dram")
"""Parts of the energy of a training step."""

BACKWARD = 2.0
"""Time of a backward step in forward steps: gradients of inputs and of weights."""

RECOMPUTE = 1.0
"""Forward steps that a reversible block adds: it recomputes its inputs from its outputs."""

_KEPT = 2.0
"""Activations that a reversible block needs at once: its input and its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStepCost:
    """Inputs of the cost model of a training step, for n designs; all but ``blocks`` are (n,)."""

    blocks: int
    reversible: Floats
    activation_bytes: Floats
    block_macs: Floats
    macs_per_s: Floats
    mac_j: Floats
    kinds: Mapping[str, Mask]
    area_mm2: Floats
    spill: Mask
    refresh_all: Mask
    retention_s: Floats
    dram_bytes_per_s: Floats

    def of_kind(self, name: str) -> Floats:
        """Return the value of an attribute of :class:`MemoryKind` for each of n designs, (n,)."""
        return sum_layers(
            np.array(
                [here * float(getattr(KINDS[kind], name)) for kind, here in self.kinds.items()]
            )
        )

    @property
    def training(self) -> ReversibleTraining:
        """Timing of the training step without stalls on DRAM traffic."""
        return ReversibleTraining(
            blocks=self.blocks,
            reversible=self.reversible,
            forward_s=self.block_macs / self.macs_per_s,
        )

    @property
    def capacity_bytes(self) -> Floats:
        """Capacity of the on-chip memory for activations in bytes, (n,)."""
        mm2 = self.of_kind("area_share") * SRAM.mm2
        return np.divide(self.area_mm2, mm2, out=np.zeros_like(mm2), where=mm2 > 0)

    @property
    def storage_bytes(self) -> Floats:
        """Largest number of bytes of activations that must be stored at once, (n,)."""
        return self.training.kept * self.activation_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bytes:
    """Bytes of a training step by memory and direction, (n,)."""

    kept: Floats  # largest number stored on chip
    read: Floats  # on chip
    written: Floats  # on chip
    dram: Floats  # to DRAM and from it
    share: Floats  # fraction of the stored bytes that is on chip


def short_of_memory(step: TrainingStepCost) -> Mapping[int, Failure]:
    """Return the designs whose activations neither fit on chip nor may spill, as infeasible."""
    needs, has = step.storage_bytes, step.capacity_bytes
    short = (needs > has) & ~step.spill & ~step.kinds["dram"]
    return infeasible(
        short,
        lambda row: (
            f"needs {needs[row] / 1024:.1f} KiB on the chip, has {has[row] / 1024:.1f} KiB: "
            f"{(needs[row] - has[row]) / 1024:.1f} KiB short"
        ),
    )


def costs(step: TrainingStepCost, dram_j_per_byte: float) -> Mapping[str, Floats]:
    """Compute latency, energy, area and traffic of n training steps, each (n,)."""
    training, moved = step.training, _bytes(step)
    compute_s = sum_layers(training.steps_s)
    latency_s = np.maximum(compute_s, moved.dram / step.dram_bytes_per_s)
    lifetimes_s = training.lifetimes_s * (latency_s / compute_s)
    times = _refreshes(step, lifetimes_s, latency_s)
    refreshed = times * step.activation_bytes * moved.share
    parts = {
        "mac": step.block_macs * step.mac_j * _forward_steps(step),
        "access": (moved.read * SRAM.read_j + moved.written * SRAM.write_j)
        * step.of_kind("access_share"),
        "refresh": refreshed
        * step.of_kind("refresh_accesses")
        * step.of_kind("access_share")
        * SRAM.read_j,
        "leakage": moved.kept * SRAM.leakage_w * step.of_kind("leakage_share") * latency_s,
        "dram": moved.dram * dram_j_per_byte,
    }
    return {
        **{f"{name}_energy": parts[name] for name in PARTS},
        "energy": sum_layers(np.array([parts[name] for name in PARTS])),
        "latency": latency_s,
        "compute_time": compute_s,
        "wait_time": latency_s - compute_s,
        "bottleneck": (latency_s > compute_s).astype(float),
        "storage": step.storage_bytes,
        "capacity": step.capacity_bytes,
        "dram_traffic": moved.dram,
        "refreshed": refreshed,
        "refreshes": times,
        "longest_lifetime": lifetimes_s.max(axis=0),
        "retention": step.retention_s,
    }


def _bytes(step: TrainingStepCost) -> _Bytes:
    """Return the bytes that a training step stores, reads and writes on chip, and in DRAM.

    Data that does not fit on chip is written to DRAM each time it is computed, and read back once.
    """
    training, needs = step.training, step.storage_bytes
    share = np.minimum(step.capacity_bytes / needs, 1.0)
    one = step.activation_bytes
    all_bytes = (training.read + training.written) * one
    spilled = 2.0 * (1.0 - share) * training.made * one
    on_chip = ~step.kinds["dram"]
    return _Bytes(
        kept=share * needs,
        read=training.read * one * on_chip,
        written=training.written * one * on_chip,
        dram=np.where(on_chip, spilled, all_bytes),
        share=share,
    )


def _refreshes(step: TrainingStepCost, lifetimes_s: Floats, latency_s: Floats) -> Floats:
    """Return how many activation refreshes a training step needs in total, (n,)."""
    by_lifetime = sum_layers(refreshes(lifetimes_s, step.retention_s))
    by_clock = refreshes(latency_s, step.retention_s) * step.training.kept
    return np.where(step.refresh_all, by_clock, by_lifetime) * (
        step.of_kind("refresh_accesses") > 0
    )


def _forward_steps(step: TrainingStepCost) -> Floats:
    """Return a training step's work in units of one block's forward step, (n,)."""
    return step.blocks * (1.0 + BACKWARD) + RECOMPUTE * step.reversible


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversibleTraining:
    """Training step of n networks of ``blocks`` equal blocks each.

    The first ``reversible`` blocks of each network are reversible, because an ordinary network must
    keep their activations longest.
    """

    blocks: int
    reversible: Floats  # (n,)
    forward_s: Floats  # (n,), one block

    @property
    def steps_s(self) -> Floats:
        """Forward plus backward time of each block in seconds, (blocks, n)."""
        return self.forward_s * (1.0 + BACKWARD + RECOMPUTE * self.is_reversible)

    @property
    def is_reversible(self) -> Floats:
        """Indicator of reversible blocks, 1 or 0, (blocks, n)."""
        return (np.arange(self.blocks)[:, None] < self.reversible).astype(float)

    @property
    def lifetimes_s(self) -> Floats:
        """Time for which the input of each block is needed, in seconds, (blocks, n).

        The input of an ordinary block is needed from its forward step to its backward step, and so
        during both steps of all later blocks. The input of a reversible block is needed only during
        its own two steps, because it is recomputed in between.

        Source:
            S. Q. Zhang et al.: CAMEL, HPCA 2024, section IV: lifetimes of forward and backward.
        """
        own = self.steps_s
        onwards = np.cumsum(own[::-1], axis=0)[::-1]
        return np.where(self.is_reversible > 0, own, onwards)

    @property
    def kept(self) -> Floats:
        """Largest number of blocks' input activations that are stored at the same time, (n,)."""
        ordinary = self.blocks - self.reversible
        return np.minimum(ordinary + _KEPT * (self.reversible > 0), self.blocks)

    @property
    def made(self) -> Floats:
        """Number of activations computed, (n,); those of reversible blocks are computed twice."""
        return self.blocks + self.reversible

    @property
    def read(self) -> Floats:
        """Number of activations and gradients that a training step reads, (n,).

        Each activation is read by the next block and for the gradient of the weights, each
        gradient once; a reversible block also reads its outputs.
        """
        return 3.0 * self.blocks + self.reversible

    @property
    def written(self) -> Floats:
        """Number of activations and gradients written, (n,): one gradient per block."""
        return self.made + self.blocks


def refreshes(needed_s: Floats, retention_s: Floats) -> Floats:
    """Return the number of refreshes needed to keep data for ``needed_s`` seconds."""
    return np.asarray(np.floor(needed_s / retention_s))
