"""Memory, traffic and arithmetic intensity of an offloaded training step (ZeRO-Infinity)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

STATE_BYTES = {"weights": 2.0, "gradients": 2.0, "optimizer": 16.0}
"""Bytes per weight: 16 bits, 16 bits, and in 32 bits a copy, two moments and the gradient."""

KINDS = ("weights", "optimizer", "activations")
"""Kinds of traffic: weights with their gradients, optimizer states, checkpointed activations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Dimensions of n training jobs, each on one GPU, with the memory and traffic they need, (n,).

    Source:
        Rajbhandari et al.: ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep
        Learning, SC 2021, sections 3 (memory) and 4 (bandwidth).
    """

    layers: Floats
    hidden: Floats
    heads: Floats
    batch: Floats
    """Sequences that this GPU processes in a step."""
    sequence: Floats
    checkpoint_interval: Floats

    @property
    def parameters(self) -> Floats:
        """Number of weights of the model, (n,): equation 1."""
        return 12.0 * self.layers * self.hidden**2

    @property
    def tokens(self) -> Floats:
        return self.batch * self.sequence

    @property
    def checkpoints(self) -> Floats:
        """Bytes of a step's activation checkpoints, (n,): equation 3."""
        return 2.0 * self.tokens * self.hidden * self.layers / self.checkpoint_interval

    @property
    def largest_product(self) -> Floats:
        """Bytes of a layer's largest weight and gradient, the working memory: equation 4."""
        return 4.0 * self.hidden * (4.0 * self.hidden)

    @property
    def working(self) -> Floats:
        """Bytes of activations between two checkpoints, their working memory: equation 5."""
        a_token = 16.0 * self.hidden + 2.0 * self.heads * self.sequence
        return self.tokens * self.checkpoint_interval * a_token

    @property
    def flops(self) -> Floats:
        """Operations of a step, forward, backward (twice) and recomputation: equation 8."""
        return 8.0 * self.tokens * self.parameters

    @property
    def intensities(self) -> dict[str, Floats]:
        """Operations per byte moved, for each kind of traffic in KINDS: equations 9, 10 and 11."""
        return {
            "weights": self.tokens + 0.0 * self.hidden,
            "optimizer": self.tokens / 4.0 + 0.0 * self.hidden,
            "activations": 24.0 * self.hidden * self.checkpoint_interval,
        }


def efficiency(intensity: Floats, bandwidth: Floats, flops_per_s: Floats) -> Floats:
    """Return the fraction of time spent computing, without overlap: equation 6, (n,)."""
    moved = intensity * bandwidth
    return np.asarray(moved / (moved + flops_per_s), dtype=np.float64)


def bandwidth_for(target: Floats, intensity: Floats, flops_per_s: Floats) -> Floats:
    """Return the bandwidth [B/s] that gives the efficiency ``target``, by equation 6, (n,)."""
    return np.asarray(target / (1.0 - target) * flops_per_s / intensity, dtype=np.float64)
