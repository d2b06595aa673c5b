"""Array cycles and buffer traffic of a training step's GEMMs, by block of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Array, Floats
from dse_evaluators.accelerators.training.chains import ConvolutionBlock
from dse_evaluators.accelerators.training.split_arrays import ARRAYS, SUMS, Arrays, run
from dse_evaluators.accelerators.training.training_products import (
    Channels,
    ConvolutionTraining,
    sum_rows,
)

_BLOCK_ROWS = 256.0
"""Rows of a block whose partial sums are kept at the array."""


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

    They are computed once for designs that agree in both.
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
