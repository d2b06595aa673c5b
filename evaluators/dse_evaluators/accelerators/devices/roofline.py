"""Time of a kernel under a smooth roofline with three bounds: compute, memory, dependency chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineConstants:
    """Roofline constants of a device relative to its data sheet, for one number format.

    Fields are numbers, or arrays that broadcast with the kernels' operation counts.

    ``chain_s`` is the time of one sequential step of a dot product, which parallel units cannot
    shorten: without it, a GEMM with large k and small m and n would seem free.
    ``conversion_bytes`` are moved per element of the left-hand operand if it is first converted to
    a narrower format.
    """

    compute_share: Floats | float
    """Achieved share of the dense peak rate."""
    memory_share: Floats | float
    """Achieved share of the peak memory bandwidth."""
    exponent: Floats | float
    """Exponent of the norm that combines the bounds: infinite is their maximum, 1 their sum."""
    launch_s: Floats | float
    """Fixed time of a kernel launch."""
    chain_s: Floats | float = 0.0
    conversion_bytes: Floats | float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWork:
    """Operations, bytes moved and sequential steps of kernels; fields broadcast to one shape."""

    flops: Floats
    moved_bytes: Floats
    """Bytes of operands and results, each moved once."""
    chain: Floats
    """Sequential steps of one dot product."""
    converted: Floats
    """Elements of the left-hand operand that are converted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Time of each kernel [s], split by cause: compute, memory, sequential steps and others.

    The causes sum to ``total_s``. The time under the norm in :func:`times` is divided among
    compute, memory and sequential steps in proportion to the terms of the norm, each raised to its
    exponent.
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
    """Compute the time of each kernel under a smooth roofline.

    ``((F / ec P)^n + (B / em W)^n + (c K)^n)^(1/n) + q M K / em W + t0``, with ``F`` the
    floating-point operations, ``B`` the moved bytes, ``P`` and ``W`` the peak compute rate and
    bandwidth, ``K`` the length of the dot products, and ``M K`` the number of elements converted to
    a narrower format. The fields of :class:`RooflineConstants` are, in order, ``ec``, ``em``,
    ``n``, ``t0``, ``c`` and ``q``.

    Source:
        S. Williams, A. Waterman, D. Patterson: Roofline, CACM 2009, for compute and memory; the
        norm in place of their maximum, the chain and the conversion are additions of this project:
        docs/devices.md.
    """
    moved_per_s = constants.memory_share * bytes_per_s
    compute_s = work.flops / (constants.compute_share * flops_per_s)
    memory_s = work.moved_bytes / moved_per_s
    chain_s = work.chain * constants.chain_s
    highest = np.maximum(np.maximum(compute_s, memory_s), chain_s)
    highest = np.where(highest > 0, highest, 1.0)  # avoids 0 / 0 where there is no work
    compute, memory, chain = (
        (roof / highest) ** constants.exponent for roof in (compute_s, memory_s, chain_s)
    )
    powers = compute + memory + chain
    # Each bound's share of the norm times the norm is its power times this scale.
    scale = highest * np.where(powers > 0, powers, 1.0) ** (1.0 / constants.exponent - 1.0)
    return Times(
        compute_s=compute * scale,
        memory_s=memory * scale,
        chain_s=chain * scale,
        conversion_s=constants.conversion_bytes * work.converted / moved_per_s,
        launch_s=np.broadcast_to(constants.launch_s, highest.shape),
    )


def total_s(
    work: KernelWork,
    constants: RooflineConstants,
    *,
    flops_per_s: Floats | float,
    bytes_per_s: Floats | float,
) -> Floats:
    """Return the time of each kernel [s], equal bit by bit to the total of :func:`times`.

    The computation is faster: the ratio of the highest bound to itself is 1, and so is its power:
    only those of the lower bounds are computed.
    """
    moved_per_s = constants.memory_share * bytes_per_s
    compute_s = work.flops / (constants.compute_share * flops_per_s)
    memory_s = work.moved_bytes / moved_per_s
    lower_s, higher_s = np.minimum(compute_s, memory_s), np.maximum(compute_s, memory_s)
    chained = bool(np.any(constants.chain_s))
    chain_s = work.chain * constants.chain_s if chained else np.zeros_like(higher_s)
    most_s = np.maximum(higher_s, chain_s)
    works = most_s > 0
    most_s = np.where(works, most_s, 1.0)  # avoids 0 / 0 where there is no work
    lower = (lower_s / most_s) ** constants.exponent
    higher: Floats | float = 1.0
    chain: Floats | float = 0.0
    if chained:
        middle = (np.minimum(higher_s, chain_s) / most_s) ** constants.exponent
        short = chain_s < higher_s
        higher, chain = np.where(short, 1.0, middle), np.where(short, middle, 1.0)
    scale = most_s * (lower + higher + chain) ** (1.0 / constants.exponent - 1.0)
    under = np.where(works, lower * scale + higher * scale + chain * scale, 0.0)
    return under + constants.conversion_bytes * work.converted / moved_per_s + constants.launch_s
