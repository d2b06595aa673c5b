"""Cycles and buffer traffic of products on one large array, on four small ones, and on FlexSA.

The k x n matrix is cut into tiles that fill an array; each tile stays while the m rows stream
through, one a cycle. A tile that leaves half of a large array empty wastes it. Four arrays of half
the side waste less and read every row, and pass on every partial sum, about twice as often.
FlexSA's four parts work as one for a full tile; where a tile is no wider or no higher than a part
(or both), as two (or four) that share the rows between them. Filling and draining hide behind the
next tile, and parts share rows evenly.

Source:
    S. Lym, M. Erez: FlexSA: Flexible Systolic Array Architecture for Efficient Pruned DNN Model
    Training, 2020, for the idea. The equations are first principles: the paper's own were not at
    hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Value
from dse_evaluators.accelerators.training.training_products import TrainingProducts

ARRAYS: Mapping[Value, float] = {"large": 0.0, "split": 1.0, "flexible": 2.0}
"""One large array (1G1C), four of half its side (1G4C), or four that can be one (FlexSA)."""

SUMS: Mapping[Value, float] = {"drained": 0.0, "kept": 1.0}
"""Partial sums go to the buffer after every tile, or stay beside the array until they are done."""

WORD_BYTES = 2.0
"""Operands are 16 bits wide, partial sums twice that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """Processing elements as ``groups`` of arrays; every field is (n,) or (1,)."""

    kind: Floats
    """The code in :data:`ARRAYS`."""
    side: Floats
    """Of a group's whole array; its parts have half of it."""
    groups: Floats
    block_rows: Floats
    """Rows that stream through before the next tile: each tile is read again for the next ones."""
    sums: Floats
    """The code in :data:`SUMS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitArrayCost:
    """Cycles and traffic of products; every field is (p, n)."""

    cycles: Floats
    parted_cycles: Floats
    """Of these, those in which FlexSA's parts do not work as one array."""
    read_bytes: Floats
    """What the arrays take from the buffer."""
    written_bytes: Floats


def run(products: TrainingProducts, arrays: Arrays) -> SplitArrayCost:
    """The products, each shared among the groups: its rows, or the samples that it sums over.

    Each group has its own copy of a tile, or its own sums, which are read and added at the end.
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
    """A dimension in tiles of ``side``; the last of a ``flexible`` array may be narrow.

    Narrow is what leaves half of the array empty, and so lets its parts share the rows.
    """

    def __init__(self, size: Floats, side: Floats, flexible: Floats) -> None:
        self.tiles = np.ceil(size / side)
        left = size - (self.tiles - 1.0) * side  # in the last tile, 1 .. side
        self.narrow = (left <= side / 2.0) * flexible
        self.wide = self.tiles - self.narrow
        self.left = left * self.narrow
        """What lies in the narrow tile."""
        self.rest = size - self.left


def _tile_words(m: Floats, n: _Cut, k: _Cut, block_rows: Floats) -> Floats:
    """Words of all tiles, each as often as there are blocks of rows.

    Two or four parts that share a tile take two or four blocks at once.
    """
    blocks = m / block_rows
    wide, halves = n.rest * k.rest, n.left * k.rest + n.rest * k.left
    parted = halves * np.ceil(blocks / 2.0) + n.left * k.left * np.ceil(blocks / 4.0)
    return wide * np.ceil(blocks) + parted
