"""Bytes that each block of a network moves and stores in a training step, by kind.

Words have 16 bits. X and Y denote a convolution's input and output, W its weights. The forward
pass moves X + Y + W, the gradient of the input Y + W + X (not computed for the network's own
input), the gradient of the weights X + Y + W, and a residual sum 3 Y forward and 3 Y backward. A
normalization moves 3 Y forward (statistics, result) and 5 Y backward.

Source:
    S. Lym et al.: Mini-batch Serialization: CNN Training with Inter-layer Data Reuse, 2019, for
    the schedule; passes of a normalization as in the cost script of S. Lym et al.: PruneTrain,
    2019. The other counts are first principles: the paper's own were not available.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Array, Floats
from dse_evaluators.accelerators.training.chains import Conv, ConvolutionBlock
from dse_evaluators.accelerators.training.split_arrays import ARRAYS, SUMS, WORD_BYTES, Arrays, run
from dse_evaluators.accelerators.training.training_products import (
    Channels,
    ConvolutionTraining,
    sum_rows,
)

NORM_PASSES = 8.0
"""Passes of Y through DRAM in a normalization: 3 forward and 5 backward."""

FUSED_NORM_PASSES = 2.0
"""Passes left with the best possible fusion of normalizations.

Forward, statistics are computed while a convolution writes, and applied while the next one reads.
Backward, both GEMMs that use the gradient also read Y.
"""

_SUM_PASSES = 6.0

_BLOCK_ROWS = 256.0
"""Rows of a block whose partial sums are kept at the array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprints:
    """Bytes that each of b blocks of a network moves or stores, per sample except for weights.

    Every field is (b, 1).
    """

    input: Floats
    """Input activations, from the previous block."""
    plain: Floats
    """DRAM traffic of a step with the conventional schedule, without weights and normalizations."""
    outputs: Floats
    """Outputs of all its convolutions: one pass of its normalizations."""
    stored: Floats
    """DRAM writes and reads for the backward pass by a block whose activations stay on chip."""
    need: Floats
    """Largest number of bytes that it holds at a time."""
    weights: Floats
    """Weights, at 16 bits each."""
    returned: Floats
    """Weights that the gradient of the input reads."""


def footprints(chain: Sequence[ConvolutionBlock]) -> Footprints:
    """Compute the bytes that each block of a chain of blocks moves and stores."""

    def column(count: Callable[[ConvolutionBlock], int]) -> Floats:
        return WORD_BYTES * np.array([[count(block)] for block in chain], dtype=np.float64)

    return Footprints(
        input=column(lambda block: block.convs[0].inputs),
        plain=column(_plain),
        outputs=column(lambda block: sum(conv.outputs for conv in block.all_convs)),
        # Y for the gradient of the norm, X for that of the weights; the shortcut shares the block's
        # input.
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
    """Return the most activations that a block holds at a time, in elements per sample.

    These are the input and output of a layer, and the operand kept for the residual sum: the
    block's input or, while the shortcut convolution runs, the output of the last convolution.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayWork:
    """Cycles, operations and buffer bytes on one large array.

    ``cycles`` is (b, n), for b blocks and n designs; the other fields are totals, (n,).
    """

    cycles: Floats
    macs: Floats
    read_bytes: Floats
    written_bytes: Floats

    def take(self, rows: Array) -> ArrayWork:
        """Return the values of the designs at the indices ``rows``."""
        return ArrayWork(
            cycles=self.cycles[:, rows],
            macs=self.macs[rows],
            read_bytes=self.read_bytes[rows],
            written_bytes=self.written_bytes[rows],
        )


class BlockWork:
    """Array cycles and buffer traffic of a chain, by number of samples and array side.

    The work is computed once for designs that agree in both.
    """

    def __init__(self, chain: Sequence[ConvolutionBlock]) -> None:
        convs = [conv for block in chain for conv in block.all_convs]
        self._training = ConvolutionTraining(convs)
        self._channels = Channels(
            inputs=np.array([[conv.channels] for conv in convs], dtype=np.float64),
            outputs=np.array([[conv.filters] for conv in convs], dtype=np.float64),
        )
        self._block = np.repeat(np.arange(len(chain)), [len(block.all_convs) for block in chain])

    def of(self, samples: Floats, side: Floats) -> ArrayWork:
        """Return the array cycles and traffic for (n,) samples on arrays of (n,) sides."""
        kinds, place = np.unique(np.stack([samples, side]), axis=1, return_inverse=True)
        return self._compute_work(kinds[0], kinds[1]).take(place.reshape(-1))

    def _compute_work(self, samples: Floats, side: Floats) -> ArrayWork:
        products = self._training.products(self._channels, samples)
        done = run(products, _large(side))
        block = self._block[products.place]
        cycles = [sum_rows(done.cycles[block == place]) for place in range(block.max() + 1)]
        return ArrayWork(
            cycles=np.stack(cycles),
            macs=sum_rows(products.macs),
            read_bytes=sum_rows(done.read_bytes),
            written_bytes=sum_rows(done.written_bytes),
        )


def _large(side: Floats) -> Arrays:
    return Arrays(
        kind=np.array([ARRAYS["large"]]),
        side=side,
        groups=np.ones(1),
        block_rows=np.array([_BLOCK_ROWS]),
        sums=np.array([SUMS["kept"]]),
    )
