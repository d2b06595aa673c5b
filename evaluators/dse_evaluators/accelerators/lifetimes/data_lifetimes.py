"""Lifetimes of activations in training, and how many of them are needed at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

BACKWARD = 2.0
"""A backward step in forward steps: gradients of the inputs and of the weights."""

RECOMPUTE = 1.0
"""What a reversible block's backward step does besides: its inputs from its outputs."""

_KEPT = 2.0
"""Activations that a reversible block needs at once: what comes in and what goes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversibleTraining:
    """One training step of n networks of equal blocks.

    The first ``reversible`` blocks are reversible: theirs are the activations that an ordinary
    network keeps longest.
    """

    blocks: int
    reversible: Floats  # (n,)
    forward_s: Floats  # (n,), one block

    @property
    def steps_s(self) -> Floats:
        """Forward and backward time of each block, (blocks, n)."""
        return self.forward_s * (1.0 + BACKWARD + RECOMPUTE * self.is_reversible)

    @property
    def is_reversible(self) -> Floats:
        """1 where a block is reversible, else 0, (blocks, n)."""
        return (np.arange(self.blocks)[:, None] < self.reversible).astype(float)

    @property
    def lifetimes_s(self) -> Floats:
        """Time that the input of each block is needed, (blocks, n).

        An ordinary block's from its forward step to its backward step, hence through both steps of
        all later blocks; a reversible one's through its own two, for it is made again in between.

        Source:
            S. Q. Zhang et al.: CAMEL, HPCA 2024, section IV: lifetimes of forward and backward.
        """
        own = self.steps_s
        onwards = np.cumsum(own[::-1], axis=0)[::-1]
        return np.where(self.is_reversible > 0, own, onwards)

    @property
    def kept(self) -> Floats:
        """Activations that are needed at once, at most, (n,)."""
        ordinary = self.blocks - self.reversible
        return np.minimum(ordinary + _KEPT * (self.reversible > 0), self.blocks)

    @property
    def made(self) -> Floats:
        """Activations that are written: a reversible block's twice, (n,)."""
        return self.blocks + self.reversible

    @property
    def read(self) -> Floats:
        """Activations and gradients that are read, (n,).

        Each by the next block and for the gradient of the weights, each gradient once; a
        reversible block reads its outputs too.
        """
        return 3.0 * self.blocks + self.reversible

    @property
    def written(self) -> Floats:
        """Activations, and one gradient for each block, (n,)."""
        return self.made + self.blocks


def refreshes(needed_s: Floats, retention_s: Floats) -> Floats:
    """Return how many refreshes cells of this retention time need while they keep a bit."""
    return np.asarray(np.floor(needed_s / retention_s))
