"""GPU memory of zeroth-order fine-tuning with blocks streamed through the GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse_evaluators.fits import SUFFIX, fits_in

FIT = fits_in(Path(__file__).with_suffix(SUFFIX))["zo2-gpu-memory"]

FITTED_TOKENS = 2048.0
FITTED_VOCABULARY = 50_272.0
FITTED_HIDDEN = (2048.0, 12_288.0)

RUNTIME_BYTES = 0.5e9
"""Part of the fitted constant that is independent of tokens, the CUDA context: assumed."""

Parts = dict[str, Floats]


def gpu_parts(
    *,
    embedding: Floats,
    blocks: Floats,
    tokens: Floats,
    vocabulary: Floats,
    resident: Floats,
) -> Parts:
    """Return the parts of the GPU's memory use, (n,) each, in bytes.

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
