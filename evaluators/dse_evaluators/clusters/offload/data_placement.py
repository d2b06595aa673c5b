"""Placement of a training step's data on GPU, CPU and NVMe, and the constraints on plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask, Value
from dse_evaluators.clusters.rules import Rule

PLACES = ("gpu", "cpu", "nvme")
GPU, CPU, NVME = (float(place) for place in range(3))

OVERLAPS = ("none", "transfers", "all")
"""No overlap; transfers during computation; the optimizer during the backward pass as well."""

WIRES: Mapping[Value, float] = {"fp32": 4.0, "fp16": 2.0, "fp8": 1.0}
"""Bytes of a weight, gradient or activation while it is not on the GPU."""

WORD_BYTES = 2.0
"""Bytes of a weight, gradient or activation on the GPU."""

OPTIMIZER_BYTES = 12.0
"""Bytes per weight: its 32-bit copy and the two moments of Adam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadPlan:
    """Plans of n training steps; every field is (n,), with indices into PLACES and OVERLAPS."""

    layers: Floats
    hidden: Floats
    vocabulary: Floats
    batch: Floats
    """Sequences that pass through the model at once."""
    sequence: Floats
    accumulate: Floats
    """Batches whose gradients are accumulated for one step of the optimizer."""
    checkpoint_interval: Floats
    """Layers between two checkpoints, which are layer inputs that are always kept."""
    kept: Floats
    """Share of the other activations kept for the backward pass; the rest is recomputed."""
    resident: Floats
    """Layers whose weights stay on the GPU while the others are offloaded."""
    held: Floats
    """Last layers whose activations stay on the GPU while those of the others are offloaded."""
    wire_bytes: Floats
    weights_at: Floats
    gradients_at: Floats
    optimizer_at: Floats
    activations_at: Floats
    overlap: Floats

    @property
    def parameters(self) -> Floats:
        """Number of weights: 12 hidden**2 per layer, one embedding, no biases or norms."""
        return 12.0 * self.layers * self.hidden**2 + self.vocabulary * self.hidden

    @property
    def tokens(self) -> Floats:
        """Number of tokens of one batch, (n,)."""
        return self.batch * self.sequence

    @property
    def block(self) -> Floats:
        """Number of weights that are moved at a time: a layer and a share of the embedding."""
        return self.parameters / self.layers

    @property
    def streamed(self) -> Floats:
        """Fraction of the weights that is streamed to the GPU, not permanently on it, (n,)."""
        here = np.where(self.weights_at == GPU, self.layers, self.resident)
        return 1.0 - here / self.layers

    @property
    def overlapped(self) -> Mask:
        return self.overlap > OVERLAPS.index("none")

    @property
    def eager(self) -> Mask:
        """Mask of plans whose optimizer updates each layer during the backward pass, (n,)."""
        return self.overlap == OVERLAPS.index("all")

    @property
    def runs_at(self) -> Floats:
        """Index of the place where the optimizer runs: GPU, or CPU for data on CPU or disk."""
        return np.minimum(self.optimizer_at, CPU)

    @property
    def keeps_gradients(self) -> Mask:
        """Mask of plans that store gradients; other plans update layers as gradients arrive."""
        return ~self.eager | (self.accumulate > 1.0)

    @property
    def moving(self) -> Floats:
        """Number of layer blocks on the GPU at a time: one and, with overlap, the next one."""
        return np.where(self.overlapped, 2.0, 1.0)


def rules(plan: OffloadPlan, ssds: Floats) -> Iterator[Rule]:
    """Yield the constraints on offload plans, except those on memory capacities."""
    several = "{has:g} layers %s, but there are {needs:g}: {short:g} too many"
    for what, count in (
        ("stay on the GPU", plan.resident),
        ("are between checkpoints", plan.checkpoint_interval),
        ("keep their activations on the GPU", plan.held),
    ):
        yield Rule(count > plan.layers, several % what, count, plan.layers)
    here = (plan.held > 0.0) & (plan.activations_at == GPU)
    yield Rule(
        here, "{has:g} layers are held, but all activations are on the GPU", plan.held, plan.held
    )
    places = (plan.weights_at, plan.gradients_at, plan.optimizer_at, plan.activations_at)
    kinds = np.sum([place == NVME for place in places], axis=0).astype(np.float64)
    yield Rule(
        (kinds > 0.0) & (ssds < 1.0),
        "{has:g} kinds of data on disk, and {needs:g} disks",
        kinds,
        ssds,
    )
    for place, name in ((GPU, "GPU"), (CPU, "CPU")):
        yield Rule(
            plan.eager & (plan.runs_at == place) & (plan.gradients_at != place),
            f"the optimizer overlaps on the {name}: gradients_at must be the {name}",
            plan.gradients_at,
            plan.runs_at,
        )
