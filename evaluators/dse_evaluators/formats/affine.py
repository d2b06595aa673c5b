"""Affine (asymmetric) quantization: one stored scale and zero point per block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse_evaluators.formats.arrays import Single, check_finite, chunks
from dse_evaluators.formats.error import least_error
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Shifted
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.linear import SHRUNK
from dse_evaluators.formats.scaling import Field, Sides
from dse_evaluators.formats.stored import SMALLEST_NORMAL, STORED, inverse


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineScaling:
    """Asymmetric quantization: a scale and a zero point map a block's range to all codes.

    The range always includes zero, which is represented exactly. With ``mse``, several factors that
    shrink both ends of the range are tried, and the one with the least squared error is chosen.
    With ``one_division`` the scale and the zero point are rounded as torchao does: the difference
    of the ends is divided by the number of steps, and the lower end by the scale.

    Source:
        Jacob et al., Quantization and Training of Neural Networks for Efficient
        Integer-Arithmetic-Only Inference, 2018, section 2.1 and eq. 12; torchao 0.18,
        ``_choose_qparams_affine`` (``one_division``).
    """

    span: Span
    measure: Literal["max", "mse"] = "max"
    stored: str = "fp16"
    one_division: bool = False

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:
        return (
            Field(name="scale", part="scale", bits=STORED[self.stored].bits, count=blocks),
            Field(name="zero", part="zero_point", bits=grid.bits, count=blocks),
        )

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        low, high = _ends(blocks)
        if self.measure == "mse":
            shares = np.array(SHRUNK, dtype=np.float32)
            tried = [self._at(low * share, high * share, grid)[1] for share in shares]
            best = shares[least_error(blocks, tried)]
            low, high = low * best, high * best
        return self._at(low, high, grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        scale = STORED[self.stored].scales(sides["scale"])[:, None]
        zeros = sides["zero"].astype(np.float32)[:, None]
        return Shifted(bits=grid.bits, zeros=zeros, into=inverse(scale), back=scale)

    def _at(
        self,
        low: Single,  # (b,), not above zero
        high: Single,  # (b,), not below zero
        grid: Grid,
    ) -> tuple[Sides, Lattice]:
        most = 2**grid.bits - 1
        scale = self._scales(low, high, most)
        limit = np.float32(np.finfo(np.float32).max / most)
        words = STORED[self.stored].words(np.minimum(scale, np.nextafter(limit, np.float32(0))))
        kept = STORED[self.stored].scales(words)
        steps = -low / kept if self.one_division else -low * inverse(kept)
        zeros = np.clip(np.rint(steps), 0, most).astype(np.uint32)
        sides = {"scale": words, "zero": zeros}
        return sides, self.read(sides, grid)

    def _scales(self, low: Single, high: Single, most: int) -> Single:
        """Return the distance of two codes in each block, (b,), from the ends of its range."""
        if not self.one_division:
            return high / np.float32(most) - low / np.float32(most)
        with np.errstate(over="ignore"):  # an infinite range is limited by the caller
            return np.maximum((high - low) / np.float32(most), SMALLEST_NORMAL)


def _ends(blocks: Single) -> tuple[Single, Single]:
    """Return the minimum and the maximum of each block, (b,) each, widened to include zero."""
    low, high = (np.zeros(len(blocks), dtype=np.float32) for _ in range(2))
    for rows, columns in chunks(blocks.shape):
        part = blocks[rows, columns]
        np.minimum(low[rows], _reduce_rows(part, np.minimum), out=low[rows])
        np.maximum(high[rows], _reduce_rows(part, np.maximum), out=high[rows])
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        check_finite(blocks)
    return low, high


def _reduce_rows(
    table: Single,  # (b, g)
    of_two: np.ufunc,
) -> Single:
    """Return the minimum or maximum of each of b rows, (b,).

    For widths that are powers of two, halving the rows repeatedly is faster than a reduction.
    """
    width = table.shape[1]
    if width & (width - 1):
        return of_two.reduce(table, axis=1)
    flat = table.ravel()
    while width > 1:
        flat = of_two(flat[0::2], flat[1::2])
        width //= 2
    return flat
