"""Bytes that each block of a network moves in a training step, by kind, and keeps.

Numbers move as words of 16 bits. X and Y stand for a convolution's input and output, W for its
weights. Everywhere: the forward pass moves X + Y + W, the input's gradient Y + W + X (not for what
the network itself reads), the weights' gradient X + Y + W, and a residual sum 3 Y forward and 3 Y
backward. A normalisation moves 3 Y forward (statistics, result) and 5 Y backward.

Source:
    S. Lym et al.: Mini-batch Serialization: CNN Training with Inter-layer Data Reuse, 2019, for
    the schedule; passes of a normalisation as in the cost script of S. Lym et al.: PruneTrain,
    2019. The rest of the counts is first principles: the paper's own were not at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.training.chains import Conv, ConvolutionBlock
from dse_evaluators.accelerators.training.split_arrays import WORD_BYTES

NORM_PASSES = 8.0
"""3 Y and 5 Y, each a pass over DRAM of its own."""

FUSED_NORM_PASSES = 2.0
"""The most that fusing could save: forward, the statistics are taken as a convolution writes, and
applied as the next one reads; backward, both products that use the gradient read Y beside it."""

_SUM_PASSES = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprints:
    """A chain's blocks in bytes; every field is (b, 1), all but the weights for one sample."""

    input: Floats
    """What comes in from the block before."""
    plain: Floats
    """What a step moves that goes block by block through DRAM, but for weights and norms."""
    outputs: Floats
    """All outputs of its convolutions: one pass of its normalisations."""
    stored: Floats
    """What a block that stays on the chip writes and reads again, for the backward pass."""
    need: Floats
    """The most that it holds at a time."""
    weights: Floats
    """Words of its weights, of 16 bits."""
    returned: Floats
    """Of these, those that the gradient of the input reads."""


def footprints(chain: Sequence[ConvolutionBlock]) -> Footprints:
    """The bytes of each block of a chain."""

    def column(count: Callable[[ConvolutionBlock], int]) -> Floats:
        return WORD_BYTES * np.array([[count(block)] for block in chain], dtype=np.float64)

    return Footprints(
        input=column(lambda block: block.convs[0].inputs),
        plain=column(_plain),
        outputs=column(lambda block: sum(conv.outputs for conv in block.all_convs)),
        # Y for the norm's gradient, X for the weights'; the shortcut's X is that of the block.
        stored=column(
            lambda block: (
                2 * sum(conv.outputs for conv in block.all_convs)
                + 2 * sum(conv.inputs for conv in block.convs)
            )
        ),
        need=column(_need),
        weights=column(lambda block: sum(conv.weights for conv in block.all_convs)),
        returned=column(lambda block: sum(map(_count_gradient_weights, block.all_convs))),
    )


def _plain(block: ConvolutionBlock) -> int:
    once = sum(
        (2 if conv.reads == 0 else 3) * (conv.inputs + conv.outputs) for conv in block.all_convs
    )
    return once + (int(_SUM_PASSES) * block.convs[-1].outputs if block.adds else 0)


def _need(block: ConvolutionBlock) -> int:
    """Input and output of the layer that holds most, with what waits to be added.

    What waits is the block's input; of the last layer, and where a convolution has taken its
    place, what the shortcut gives.
    """
    held = 0 if not block.adds else block.convs[0].inputs
    needs = [
        conv.inputs + conv.outputs + (held if place else 0)
        for place, conv in enumerate(block.convs)
    ]
    if block.shortcut is not None:
        waits = block.convs[-1].outputs
        needs.append(block.shortcut.inputs + block.shortcut.outputs + waits)
    return max(needs)


def _count_gradient_weights(conv: Conv) -> int:
    return 0 if conv.reads == 0 else conv.weights
