"""Cycles and buffer traffic of GEMMs on one large array, on four small ones, and on FlexSA.

The k x n matrix is cut into tiles that fill an array; each tile is stationary while the m rows
stream through, one per cycle. A small tile leaves much of a large array idle. Four arrays of half
the side idle less, but read every row and pass on every partial sum about twice as often. FlexSA's
four parts work as one array for a full tile. If a tile is no wider or no higher than a part, they
work as two arrays that divide the rows; if both, as four. Filling and draining overlap with the
next tile, and parts divide rows evenly.

Source:
    S. Lym, M. Erez: FlexSA: Flexible Systolic Array Architecture for Efficient Pruned DNN Model
    Training, 2020, for the idea. The equations are derived from first principles: the paper's own
    were not available.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Value
from dse_evaluators.accelerators.training.training_products import TrainingProducts

ARRAYS: Mapping[Value, float] = {"large": 0.0, "split": 1.0, "flexible": 2.0}
"""Codes of arrays: one large (1G1C), four of half its side (1G4C), or four combinable (FlexSA)."""

SUMS: Mapping[Value, float] = {"drained": 0.0, "kept": 1.0}
"""Handling of partial sums: to the buffer after every tile, or kept at the array until final."""

WORD_BYTES = 2.0
"""Bytes of an operand; partial sums have twice as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """Systolic arrays of n designs, in ``groups`` of arrays; every field is (n,) or (1,)."""

    kind: Floats
    """Code in :data:`ARRAYS`."""
    side: Floats
    """Side of a group's entire array; the side of a part is half of it."""
    groups: Floats
    block_rows: Floats
    """Rows streamed before the next tile is loaded; each tile is read again for every row block."""
    sums: Floats
    """Code in :data:`SUMS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitArrayCost:
    """Cycles and buffer traffic of p GEMMs in n designs; every field is (p, n)."""

    cycles: Floats
    parted_cycles: Floats
    """Cycles in which FlexSA's parts do not work as one array; included in ``cycles``."""
    read_bytes: Floats
    """Bytes that the arrays read from the buffer."""
    written_bytes: Floats
    """Bytes that the arrays write to the buffer."""


def run(products: TrainingProducts, arrays: Arrays) -> SplitArrayCost:
    """Compute the cycles and buffer traffic of GEMMs divided among groups of arrays.

    Groups divide the rows m, each with its own copy of a tile; or, in weight gradients, the samples
    summed over in k, each with its own partial sums, which are read and added at the end.
    """
    groups, sums = arrays.groups, products.sums_samples
    m = np.where(sums, products.m, np.ceil(products.m / groups))
    k = np.where(sums, np.ceil(products.k / groups), products.k)
    n = products.n
    split = arrays.kind == ARRAYS["split"]
    flexible = (arrays.kind == ARRAYS["flexible"]).astype(float)
    side = np.where(split, arrays.side / 2.0, arrays.side)
    across, down = _Cut(n, side, flexible), _Cut(k, side, flexible)
    halves = across.narrow * down.wide + across.wide * down.narrow
    parted = m * (halves / 2.0 + across.narrow * down.narrow / 4.0)
    at_once = np.where(split, 4.0, 1.0)
    sent = np.where(arrays.sums == SUMS["drained"], 2.0 * down.tiles, 1.0)
    added = np.where(sums & (groups > 1), 2.0 * m * n, 0.0)
    words = m * k * across.tiles + _tile_words(m, across, down, arrays.block_rows) + added
    return SplitArrayCost(
        cycles=(m * across.wide * down.wide + parted) / at_once,
        parted_cycles=parted,
        read_bytes=words * (groups * WORD_BYTES),
        written_bytes=m * n * sent * (groups * WORD_BYTES),
    )


class _Cut:
    """Matrix dimension cut into tiles of ``side``; a ``flexible`` array's last may be narrow.

    A narrow tile leaves at least half of the array empty, so that the array's parts can work
    separately and divide the rows.
    """

    def __init__(self, size: Floats, side: Floats, flexible: Floats) -> None:
        self.tiles = np.ceil(size / side)
        left = size - (self.tiles - 1.0) * side  # in the last tile, 1 .. side
        self.narrow = (left <= side / 2.0) * flexible
        self.wide = self.tiles - self.narrow
        self.left = left * self.narrow
        """Extent of the narrow tile; 0 if there is none."""
        self.rest = size - self.left


def _tile_words(m: Floats, n: _Cut, k: _Cut, block_rows: Floats) -> Floats:
    """Return the words read from the buffer to load all tiles, once per block of rows.

    If two or four parts of the array work on copies of one tile, they process two or four blocks of
    rows per read.
    """
    blocks = m / block_rows
    wide, halves = n.rest * k.rest, n.left * k.rest + n.rest * k.left
    parted = halves * np.ceil(blocks / 2.0) + n.left * k.left * np.ceil(blocks / 4.0)
    return wide * np.ceil(blocks) + parted
