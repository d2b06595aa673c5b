"""Time of blocks that pass through a GPU, each forward twice, as a flow line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask

_PASSES = 4.0
"""Over a weight in a step: disturbed one way, the other way, put back, and updated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRates:
    """Rates of the GPU: compute, its own memory, and its wire in each direction."""

    flops_per_s: float
    dram_bytes_per_s: float
    wire: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Equal blocks and the embeddings, which never leave; every field is (n,).

    Source:
        Malladi et al.: MeZO, 2023, algorithm 1 (passes over the weights); Wang et al.: ZO2, 2025
        (what stays, what travels and when it is updated).
    """

    layers: Floats
    hidden: Floats
    vocabulary: Floats
    positions: Floats
    tokens: Floats
    sequence: Floats
    word_bytes: Floats
    wire_bytes: Floats
    streamed: Mask
    overlap: Mask
    fused: Mask
    pace: OffloadRates

    @property
    def weights(self) -> Floats:
        """Of one block."""
        return 12.0 * self.hidden**2

    @property
    def embedding(self) -> Floats:
        """Weights of the tokens, which are those of the head, and of the places."""
        return (self.vocabulary + self.positions) * self.hidden

    @property
    def compute_s(self) -> Floats:
        """Both passes of one block."""
        a_token = 2.0 * self.weights + 4.0 * self.sequence * self.hidden
        return 2.0 * self.tokens * a_token / self.pace.flops_per_s

    @property
    def pass_s(self) -> Floats:
        """One pass over a block's weights, read and written."""
        return 2.0 * self.word_bytes * self.weights / self.pace.dram_bytes_per_s

    @property
    def head_s(self) -> Floats:
        return 4.0 * self.tokens * self.vocabulary * self.hidden / self.pace.flops_per_s

    @property
    def move_s(self) -> Floats:
        """A block in one direction; nought where it stays."""
        moved = np.where(self.streamed, self.wire_bytes * self.weights, 0.0)
        return moved / self.pace.wire

    @property
    def first_s(self) -> Floats:
        """GPU time of a block before it leaves: all of a step, except a late update."""
        passes = np.where(self.late, _PASSES - 1.0, _PASSES)
        return self.compute_s + passes * self.pass_s

    @property
    def late(self) -> Mask:
        """Mask of designs in which a block must return to be updated."""
        return self.streamed & ~self.fused

    @property
    def line_s(self) -> Floats:
        """Between two blocks that leave the line."""
        return np.maximum(self.first_s, self.move_s)

    @property
    def wire_traffic(self) -> Floats:
        """Bytes of a step in both directions."""
        trips = np.where(self.late, 2.0, 1.0)
        moved = np.where(self.streamed, self.wire_bytes * self.weights, 0.0)
        return 2.0 * trips * moved * self.layers


def total_s(blocks: Blocks) -> dict[str, Floats]:
    """The parts of a step's time, (n,) each: computing, disturbing, and waiting for the wire."""
    rounds_s = _round_s(blocks, blocks.first_s) + np.where(
        blocks.late, _round_s(blocks, blocks.pass_s), 0.0
    )
    compute_s = blocks.layers * blocks.compute_s
    perturb_s = blocks.layers * _PASSES * blocks.pass_s
    embedding_s = blocks.embedding / blocks.weights * _PASSES * blocks.pass_s
    return {
        "compute_time": compute_s + blocks.head_s,
        "perturb_time": perturb_s + embedding_s,
        "transfer_time": np.maximum(rounds_s - compute_s - perturb_s, 0.0),
    }


def _round_s(blocks: Blocks, gpu_s: Floats) -> Floats:
    """All blocks fetched, worked on and sent back: in a line, or one after another."""
    move_s = blocks.move_s
    one_s = gpu_s + 2.0 * move_s
    line_s = one_s + (blocks.layers - 1.0) * np.maximum(gpu_s, move_s)
    return np.where(blocks.overlap & blocks.streamed, line_s, blocks.layers * one_s)
