"""Time of one kernel under a smooth roofline with three roofs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineConstants:
    """Constants of a device relative to its data sheet, for one format.

    Fields are numbers, or arrays that broadcast with the work.

    ``chain_s`` is the time of one step of a dot product, which no other unit can shorten:
    without it a deep and small product looks free. ``conversion_bytes`` are moved for each element
    of the left-hand side where it is first turned into a narrower format.
    """

    compute_share: Floats | float
    """Of the dense rate; the realised part."""
    memory_share: Floats | float
    exponent: Floats | float
    """How sharply roofs meet: infinite is their largest, 1 their sum."""
    launch_s: Floats | float
    chain_s: Floats | float = 0.0
    conversion_bytes: Floats | float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWork:
    """Work of kernels; all fields have one shape, or broadcast to it."""

    flops: Floats
    moved_bytes: Floats
    """Operands and results, each once."""
    chain: Floats
    """The steps of one dot product."""
    converted: Floats
    """Elements of the left-hand side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """A kernel's time in parts, each of the shape of the work, that sum to ``total_s``.

    The time under the roofs is theirs by the power that they enter with: the highest has most.
    """

    compute_s: Floats
    memory_s: Floats
    chain_s: Floats
    conversion_s: Floats
    launch_s: Floats

    @property
    def total_s(self) -> Floats:
        under = self.compute_s + self.memory_s + self.chain_s
        return under + self.conversion_s + self.launch_s


def times(
    work: KernelWork,
    constants: RooflineConstants,
    *,
    flops_per_s: Floats | float,
    bytes_per_s: Floats | float,
) -> Times:
    """The time of each kernel.

    ``((F / ec P)^n + (B / em W)^n + (c K)^n)^(1/n) + q M K / em W + t0``

    Source:
        S. Williams, A. Waterman, D. Patterson: Roofline, CACM 2009, for the two roofs; the norm
        in place of their largest, the chain and the conversion are ours: docs/devices.md.
    """
    moved_per_s = constants.memory_share * bytes_per_s
    compute_s = work.flops / (constants.compute_share * flops_per_s)
    memory_s = work.moved_bytes / moved_per_s
    chain_s = work.chain * constants.chain_s
    highest = np.maximum(np.maximum(compute_s, memory_s), chain_s)
    highest = np.where(highest > 0, highest, 1.0)  # nothing to do takes no time
    compute, memory, chain = (
        (roof / highest) ** constants.exponent for roof in (compute_s, memory_s, chain_s)
    )
    powers = compute + memory + chain
    # A roof's share of the norm, times the norm itself.
    scale = highest * np.where(powers > 0, powers, 1.0) ** (1.0 / constants.exponent - 1.0)
    return Times(
        compute_s=compute * scale,
        memory_s=memory * scale,
        chain_s=chain * scale,
        conversion_s=constants.conversion_bytes * work.converted / moved_per_s,
        launch_s=np.broadcast_to(constants.launch_s, highest.shape),
    )
