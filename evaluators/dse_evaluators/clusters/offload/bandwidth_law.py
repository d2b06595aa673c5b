"""Share of a model that a step moves, and the bandwidth that keeps its GPU busy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

STATE_BYTES = {"weights": 2.0, "gradients": 2.0, "optimizer": 16.0}
"""Of a weight: 16 bits, 16 bits, and in 32 bits its copy, two moments and the gradient again."""

KINDS = ("weights", "optimizer", "activations")
"""What moves: weights with their gradients, optimizer states, checkpointed activations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Training job of one GPU; every field is (n,).

    Source:
        Rajbhandari et al.: ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep
        Learning, SC 2021, sections 3 (memory) and 4 (bandwidth).
    """

    layers: Floats
    hidden: Floats
    heads: Floats
    batch: Floats
    """Sequences that this GPU sees in a step."""
    sequence: Floats
    checkpoint_interval: Floats

    @property
    def parameters(self) -> Floats:
        """Equation 1."""
        return 12.0 * self.layers * self.hidden**2

    @property
    def tokens(self) -> Floats:
        return self.batch * self.sequence

    @property
    def checkpoints(self) -> Floats:
        """Equation 3, in bytes."""
        return 2.0 * self.tokens * self.hidden * self.layers / self.checkpoint_interval

    @property
    def largest_product(self) -> Floats:
        """Equation 4, model state working memory: a layer's widest weights and gradients, bytes."""
        return 4.0 * self.hidden * (4.0 * self.hidden)

    @property
    def working(self) -> Floats:
        """Equation 5, activation working memory: what lies between two checkpoints, in bytes."""
        a_token = 16.0 * self.hidden + 2.0 * self.heads * self.sequence
        return self.tokens * self.checkpoint_interval * a_token

    @property
    def flops(self) -> Floats:
        """Equation 8: forward, twice backward, and forward again to remake activations."""
        return 8.0 * self.tokens * self.parameters

    @property
    def intensities(self) -> dict[str, Floats]:
        """Operations for a byte of each of KINDS: equations 9, 10 and 11."""
        return {
            "weights": self.tokens + 0.0 * self.hidden,
            "optimizer": self.tokens / 4.0 + 0.0 * self.hidden,
            "activations": 24.0 * self.hidden * self.checkpoint_interval,
        }


def efficiency(intensity: Floats, bandwidth: Floats, flops_per_s: Floats) -> Floats:
    """The share of the time that is computing where nothing overlaps: equation 6, (n,)."""
    moved = intensity * bandwidth
    return np.asarray(moved / (moved + flops_per_s), dtype=np.float64)


def bandwidth_for(target: Floats, intensity: Floats, flops_per_s: Floats) -> Floats:
    """The bandwidth of that efficiency, bytes a second: equation 6 the other way round, (n,)."""
    return np.asarray(target / (1.0 - target) * flops_per_s / intensity, dtype=np.float64)
