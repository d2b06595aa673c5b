"""Scaling by mean magnitudes, for ternary and binary weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, Words, chunks, peaks
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Plain, Thirds
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.scaling import Field, Sides
from dse_evaluators.formats.stored import STORED

_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Scaling in which a block's scale is its mean magnitude.

    With ``ternary``, the mean is only over magnitudes above a threshold of 0.7 times the block's
    mean magnitude.

    Source:
        Rastegari et al., XNOR-Net, 2016, eq. 6 (binary); Li and Liu, Ternary Weight Networks,
        2016, eq. 5-6.
    """

    span: Span = "channel"
    ternary: bool
    stored: str = "fp16"

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        return (Field(name="scale", part="scale", bits=STORED[self.stored].bits, count=blocks),)

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        peaks(blocks)
        scale, thresholds = _mean(blocks, None), np.zeros(0, dtype=np.float32)
        if self.ternary:
            thresholds = scale * np.float32(_SHARE)
            scale = _mean(blocks, thresholds)
        sides = {"scale": STORED[self.stored].words(scale)}
        plain = self.read(sides, grid)
        if not self.ternary or plain.back is None:
            return sides, plain
        return sides, Thirds(grid=grid, thresholds=thresholds[:, None], back=plain.back)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        return Plain(grid=grid, back=STORED[self.stored].scales(sides["scale"])[:, None])


def _mean(
    blocks: Single,  # (b, g)
    thresholds: Single | None,  # (b,)
) -> Single:
    """Return each block's mean magnitude, (b,), over values above its threshold if given."""
    total = np.zeros(len(blocks), dtype=np.float64)
    count = np.zeros(len(blocks), dtype=np.int64)
    for rows, columns in chunks(blocks.shape):
        magnitudes = np.abs(blocks[rows, columns])
        if thresholds is not None:
            beyond = magnitudes > thresholds[rows, None]
            magnitudes *= beyond
            count[rows] += np.count_nonzero(beyond, axis=1)
        total[rows] += np.add.reduce(magnitudes, axis=1, dtype=np.float64)
    of = count if thresholds is not None else blocks.shape[1]
    return (total / np.maximum(of, 1)).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Grid of -1 and +1, in one bit; zero, of either sign, rounds to plus one.

    Source:
        Rastegari et al., XNOR-Net, 2016, section 3.1.
    """

    bits: int = 1
    top: float = 1.0
    has_nan: bool = False

    def snap(self, values: Single, chance: Single | None) -> None:  # noqa: ARG002
        np.multiply(values >= 0, np.float32(2), out=values)
        values -= np.float32(1)

    def codes(self, snapped: Single) -> Words:
        return (snapped < 0).astype(np.uint32)

    def values(self, codes: Words) -> Single:
        return np.float32(1) - np.float32(2) * codes.astype(np.float32)
