"""Step time and GPU memory of zeroth-order fine-tuning with blocks streamed through a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.fits import fits_in

_PASSES = 4.0
"""Passes over a weight per step: perturbed one way, the other way, restored, and updated."""

FIT = fits_in(Path(__file__).with_name("zeroth_order_memory.fits.json"))["zo2-gpu-memory"]

FITTED_TOKENS = 2048.0

FITTED_VOCABULARY = 50_272.0

FITTED_HIDDEN = (2048.0, 12_288.0)

RUNTIME_BYTES = 0.5e9
"""Part of the fitted constant that is independent of tokens, the CUDA context: assumed."""

Parts = dict[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRates:
    """Rates of the GPU: compute, its own memory, and its PCIe link in each direction."""

    flops_per_s: float
    dram_bytes_per_s: float
    wire: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Equal transformer blocks, and embeddings that stay on the GPU; every field is (n,).

    Source:
        Malladi et al.: MeZO, 2023, algorithm 1 (passes over the weights); Wang et al.: ZO2, 2025
        (which weights are streamed, and when they are updated).
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
        """Number of weights of one transformer block."""
        return 12.0 * self.hidden**2

    @property
    def embedding(self) -> Floats:
        """Number of weights of the token (and LM head) embedding and of the positions."""
        return (self.vocabulary + self.positions) * self.hidden

    @property
    def compute_s(self) -> Floats:
        """GPU time of both forward passes of one block."""
        a_token = 2.0 * self.weights + 4.0 * self.sequence * self.hidden
        return 2.0 * self.tokens * a_token / self.pace.flops_per_s

    @property
    def pass_s(self) -> Floats:
        """GPU seconds to read and write the weights of one transformer block once, (n,)."""
        return 2.0 * self.word_bytes * self.weights / self.pace.dram_bytes_per_s

    @property
    def head_s(self) -> Floats:
        return 4.0 * self.tokens * self.vocabulary * self.hidden / self.pace.flops_per_s

    @property
    def move_s(self) -> Floats:
        """Seconds to transfer a transformer block one way, (n,); 0 where it stays on the GPU."""
        moved = np.where(self.streamed, self.wire_bytes * self.weights, 0.0)
        return moved / self.pace.wire

    @property
    def first_s(self) -> Floats:
        """GPU seconds of a transformer block on its first visit to the GPU in a step, (n,).

        The time covers all of the block's work, except the weight update if the block returns to
        the GPU for it (``late``).
        """
        passes = np.where(self.late, _PASSES - 1.0, _PASSES)
        return self.compute_s + passes * self.pass_s

    @property
    def late(self) -> Mask:
        """Mask of designs whose blocks visit the GPU a second time in a step to be updated."""
        return self.streamed & ~self.fused

    @property
    def line_s(self) -> Floats:
        """Steady-state seconds between two consecutive blocks of the pipeline, (n,)."""
        return np.maximum(self.first_s, self.move_s)

    @property
    def wire_traffic(self) -> Floats:
        """Bytes that a step transfers in both directions together."""
        trips = np.where(self.late, 2.0, 1.0)
        moved = np.where(self.streamed, self.wire_bytes * self.weights, 0.0)
        return 2.0 * trips * moved * self.layers


def total_s(blocks: Blocks) -> dict[str, Floats]:
    """Return a step's seconds as a sum, (n,) each: compute, perturbation, waits for transfers."""
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
    """Return the seconds to fetch, process and send back all blocks, pipelined or in sequence.

    ``busy_s`` is the GPU time of one block.
    """
    move_s = blocks.move_s
    one_s = gpu_s + 2.0 * move_s
    line_s = one_s + (blocks.layers - 1.0) * np.maximum(gpu_s, move_s)
    return np.where(blocks.overlap & blocks.streamed, line_s, blocks.layers * one_s)


def gpu_parts(
    *,
    embedding: Floats,
    blocks: Floats,
    tokens: Floats,
    vocabulary: Floats,
    resident: Floats,
) -> Parts:
    """Return the GPU's memory use by kind of data in bytes, (n,) each.

    The constants were fitted at 2,048 tokens, 16-bit numbers and streamed blocks. The fitted
    constant without the runtime scales with the logits at other numbers of tokens.

    Args:
        embedding: bytes of the embeddings, which never leave the GPU.
        blocks: bytes of one block.
        tokens: tokens of a forward pass.
        vocabulary: logits per token.
        resident: bytes of all blocks where they stay on the GPU, 0 where they are streamed.
    """
    logits = (FIT.constants["fixed_bytes"] - RUNTIME_BYTES) / (FITTED_TOKENS * FITTED_VOCABULARY)
    copies = FIT.constants["copies"]
    return {
        "runtime": np.full_like(blocks, RUNTIME_BYTES),
        "logits": logits * tokens * vocabulary,
        "embedding": copies * embedding,
        "blocks": np.where(resident > 0.0, resident + (copies - 1.0) * blocks, copies * blocks),
    }
