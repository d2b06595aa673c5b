"""Lifetimes of activations in training, and how many must be stored at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

BACKWARD = 2.0
"""Time of a backward step in forward steps: gradients of inputs and of weights."""

RECOMPUTE = 1.0
"""Forward steps that a reversible block adds: it recomputes its inputs from its outputs."""

_KEPT = 2.0
"""Activations that a reversible block needs at once: its input and its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversibleTraining:
    """Training step of n networks of equal blocks, the first ``reversible`` of them reversible.

    The first blocks are those whose activations an ordinary network must keep longest.
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

        That of an ordinary block is needed from its forward step through its backward step, hence
        during both steps of all later blocks; that of a reversible block only during its own two
        steps, as it is recomputed in between.

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
        """Number of activations computed, (n,): those of a reversible block twice."""
        return self.blocks + self.reversible

    @property
    def read(self) -> Floats:
        """Number of activations and gradients read, (n,).

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
