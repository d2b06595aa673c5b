"""Symmetric linear quantization: stored scales per block, which may be quantized themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse_evaluators.formats.arrays import MAGNITUDE, Single, chunks, peaks
from dse_evaluators.formats.error import least_error
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Plain
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.minifloat import Minifloat
from dse_evaluators.formats.scaling import Field, Sides
from dse_evaluators.formats.stored import SMALLEST_NORMAL, STORED, inverse
from dse_evaluators.formats.tables import dynamic_tree

Measure = Literal["max", "percentile", "mse", "rms"]

SHRUNK = tuple(1 - 0.1 * step for step in range(6))
"""Clipping factors that ``mse`` tries, as shares of the largest magnitude."""

_LONG = 1 << 14  # block length above which counting is faster than partitioning

_GROUP = 256

_SCALE = Minifloat(exponent=4, mantissa=3, bias=7, specials="nan")

_LEAST = np.float32(2.0**-120)  # times the least block scale, its inverse is still finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Symmetric scaling: the grid's largest number represents the block's largest magnitude.

    In place of the largest magnitude (``max``), another statistic may be chosen: the magnitude that
    ``percentile`` percent of the values do not exceed, or the fraction 1, 0.9 ... 0.5 of the
    largest magnitude that gives the least squared error (``mse``). With ``rms`` the scale itself is
    the block's root mean square. The scale is rounded to its stored format before it is used.

    With ``steps``, the number of steps from the lowest to the highest code, the scale is the
    statistic divided by half of this number, as in the libraries torchao and compressed-tensors:
    the highest code of b bits, 2^(b-1) - 1, then represents less than the statistic.

    Source:
        Krishnamoorthi, Quantizing Deep Convolutional Networks for Efficient Inference, 2018,
        section 2; Banner et al., Post Training 4-bit Quantization, 2019 (``mse``); torchao 0.18,
        ``_choose_qparams_affine`` (``steps``).
    """

    span: Span
    measure: Measure = "max"
    percentile: float = 100.0
    stored: str = "fp16"
    steps: int | None = None

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        return (Field(name="scale", part="scale", bits=STORED[self.stored].bits, count=blocks),)

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        if self.measure == "rms":
            return self._at(root_mean_squares(blocks), grid)
        return self._at(self._scales(self._ends(blocks, grid), grid), grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        scale = STORED[self.stored].scales(sides["scale"])[:, None]
        return Plain(grid=grid, into=inverse(scale), back=scale)

    def _scales(self, ends: Single, grid: Grid) -> Single:
        """Return the scale of each block from the magnitude that limits it, (b,)."""
        if self.steps is None:
            return ends / np.float32(grid.top)
        return np.maximum(ends / np.float32(self.steps / 2), SMALLEST_NORMAL)

    def _ends(self, blocks: Single, grid: Grid) -> Single:
        """Return each block's magnitude that the grid's largest number will represent, (b,)."""
        match self.measure:
            case "max":
                return peaks(blocks)
            case "percentile":
                return percentiles(blocks, self.percentile)
            case _:
                return self._least(blocks, grid)

    def _at(
        self,
        scale: Single,  # (b,)
        grid: Grid,
    ) -> tuple[Sides, Lattice]:
        # Rounded up at the end of float32's range, the largest number would be infinite.
        limit = np.float32(np.finfo(np.float32).max / max(grid.top, 1))
        sides = {"scale": STORED[self.stored].words(np.minimum(scale, np.nextafter(limit, 0)))}
        return sides, self.read(sides, grid)

    def _least(self, blocks: Single, grid: Grid) -> Single:
        largest = peaks(blocks)
        shares = np.array(SHRUNK, dtype=np.float32)
        scales = self._scales(largest, grid)
        tried = [self._at(scales * share, grid)[1] for share in shares]
        return largest * shares[least_error(blocks, tried)]


def percentiles(
    blocks: Single,  # (b, g)
    percent: float,
) -> Single:
    """Return the ``percent``-th percentile of each block's magnitudes, (b,), not interpolated."""
    largest = peaks(blocks)
    width = blocks.shape[1]
    place = max(int(np.ceil(width * percent / 100)), 1) - 1
    if place == width - 1:
        return largest
    if width > _LONG:
        return np.array([_select_magnitude(row, place) for row in blocks], dtype=np.float32)
    return np.partition(np.abs(blocks), place, axis=1)[:, place]


def root_mean_squares(
    blocks: Single,  # (b, g)
) -> Single:
    """Return the root mean square of each block's values, (b,).

    Raises:
        EvaluationError: a value is infinite or NaN.
    """
    peaks(blocks)
    squares = np.zeros(len(blocks), dtype=np.float64)
    for rows, columns in chunks(blocks.shape):
        squares[rows] += np.square(blocks[rows, columns], dtype=np.float64).sum(axis=1)
    return np.sqrt(squares / blocks.shape[1]).astype(np.float32)


def _select_magnitude(
    row: Single,  # (g,)
    place: int,
) -> np.float32:
    """Return the magnitude of rank ``place`` among a block's, counted from 0 at the smallest.

    Magnitudes are counted by the upper 16 bits of their float32; then only those with the same
    upper bits as the result are partitioned.
    """
    bits = row.view(np.int32) & MAGNITUDE
    upper = np.bincount(bits >> np.int32(16), minlength=1).cumsum()
    bucket = int(np.searchsorted(upper, place, side="right"))
    before = int(upper[bucket - 1]) if bucket else 0
    inside = bits[(bits >> np.int32(16)) == bucket]
    return np.partition(inside, place - before)[place - before].view(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """Scaling by largest magnitudes; each scale is stored as its 8-bit offset from the mean.

    Groups of 256 scales share one float32 factor; the mean is stored once, in float32.

    Source:
        Dettmers et al., QLoRA, 2023, section 3, "Double Quantization".
    """

    span: Span

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        groups = -(-blocks // _GROUP)
        return (
            Field(name="scale", part="scale", bits=8, count=blocks),
            Field(name="group", part="scale", bits=32, count=groups),
            Field(name="mean", part="scale", bits=32, count=1),
        )

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        scale = peaks(blocks) / np.float32(grid.top)
        mean = np.array([scale.mean(dtype=np.float64)], dtype=np.float32)
        rest = np.pad(scale - mean, (0, -len(scale) % _GROUP)).reshape(-1, _GROUP)
        group = peaks(rest)
        tree = dynamic_tree()
        relative = rest * inverse(group)[:, None]
        tree.snap(relative, None)
        sides = {
            "scale": tree.codes(relative).ravel()[: len(scale)],
            "group": group.view(np.uint32),
            "mean": mean.view(np.uint32),
        }
        _, fine = sides, self.read(sides, grid)
        # Codes are chosen with the exact scales; only decoding uses the quantized ones.
        return sides, Plain(grid=grid, into=inverse(scale)[:, None], back=fine.back)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        codes = sides["scale"]
        group = np.repeat(sides["group"].view(np.float32), _GROUP)[: len(codes)]
        scale = dynamic_tree().values(codes) * group + sides["mean"].view(np.float32)
        return Plain(grid=grid, back=scale[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLevel:
    """Two-level scaling: an e4m3 scale per block, and a float32 scale for the tensor.

    The tensor's scale makes use of the range of e4m3. A block's scale is at least ``least``, by
    default the smallest normal e4m3 number. Without ``global_`` the tensor's scale is one and is
    not stored.

    Source:
        NVIDIA, Pretraining Large Language Models with NVFP4, 2025, section 2 and appendix B.
    """

    span: Span = 16
    least: float = 2.0**-6
    global_: bool = True

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        whole = Field(name="tensor", part="scale", bits=32, count=1)
        block = Field(name="block", part="scale", bits=8, count=blocks)
        return (block, whole) if self.global_ else (block,)

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        largest = peaks(blocks)
        wanted = largest / np.float32(grid.top)
        sides = {}
        if self.global_:
            whole = largest.max(keepdims=True) / np.float32(_SCALE.top * grid.top)
            whole = np.maximum(whole, _LEAST)
            wanted /= whole
            sides["tensor"] = whole.view(np.uint32)
        np.clip(wanted, np.float32(self.least), np.float32(_SCALE.top), out=wanted)
        _SCALE.snap(wanted, None)
        sides["block"] = _SCALE.codes(wanted)
        return sides, self.read(sides, grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        block = _SCALE.values(sides["block"])[:, None]
        whole = sides["tensor"].view(np.float32)[0] if self.global_ else np.float32(1)
        into = np.divide(np.float32(1) / whole, block, dtype=np.float32)
        return Plain(grid=grid, into=into, back=block * whole)
