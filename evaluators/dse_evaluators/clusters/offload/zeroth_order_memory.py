"""GPU memory of zeroth-order fine-tuning while blocks pass through the GPU."""

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
"""Of the constant part, what no text makes longer: CUDA's own context. Assumed, not fitted."""

Parts = dict[str, Floats]


def gpu_parts(
    *,
    embedding: Floats,
    blocks: Floats,
    tokens: Floats,
    vocabulary: Floats,
    resident: Floats,
) -> Parts:
    """The parts of the GPU's memory, (n,) each, in bytes.

    Constants were fitted where the text had 2,048 tokens, all words were 16 bits and blocks passed
    through; for other texts what is not the runtime's goes with the logits.

    Args:
        embedding: bytes of the embeddings, which never leave the GPU.
        blocks: bytes of one block.
        tokens: that pass at once.
        vocabulary: words that a logit is made for.
        resident: bytes of all blocks where they stay, 0 where they pass through.
    """
    logits = (FIT.constants["fixed_bytes"] - RUNTIME_BYTES) / (FITTED_TOKENS * FITTED_VOCABULARY)
    copies = FIT.constants["copies"]
    return {
        "runtime": np.full_like(blocks, RUNTIME_BYTES),
        "logits": logits * tokens * vocabulary,
        "embedding": copies * embedding,
        "blocks": np.where(resident > 0.0, resident + (copies - 1.0) * blocks, copies * blocks),
    }
