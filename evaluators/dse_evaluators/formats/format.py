"""Number format of a tensor: a grid of representable values, and the scaling of its blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single, Words, chunks
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice
from dse_evaluators.formats.layout import Axis, BlockLayout
from dse_evaluators.formats.rounding import dither
from dse_evaluators.formats.scaling import Scaling, Sides

_HUGE = 2.0**64  # a smaller scale keeps the numbers of every scaled grid within float32

Loose = NDArray[np.uint8]  # one bit per element


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Number format parsed from a name such as ``int4:group=32``; formats of equal names are equal.

    The ``axis`` of the methods is the one along which consecutive values share a scale: one axis,
    several that are flattened (``(1, 2, 3)`` for the inputs of a convolution's filters), or
    ``None`` to flatten the tensor.

    Laws: decoding an encoded tensor equals quantizing it, bit for bit; in a format without scales
    and stochastic rounding, quantizing is idempotent.
    """

    name: str
    grid: Grid = field(compare=False)
    scaling: Scaling = field(compare=False)
    short: bool = field(default=False, compare=False)
    seed: int | None = field(default=None, compare=False)  # of stochastic rounding

    def quantize(self, values: Single, axis: Axis = -1) -> Single:
        """Return the values rounded to representable ones, float32 in the same shape.

        Raises:
            EvaluationError: the tensor is empty, a value is not a number that the format can
                represent, or the blocks do not fit the axis.
        """
        layout = self._layout(np.shape(values), axis)
        blocks = layout.table(values)
        _, lattice = self.scaling.fit(blocks, self.grid)
        out = np.empty_like(blocks)
        for rows, columns in chunks(blocks.shape):
            part = self._snap_part(blocks, lattice, (rows, columns))
            _restore(part, lattice, rows, out[rows, columns])
        return layout.restore(out)

    def encode(self, values: Single, axis: Axis = -1) -> Encoded:
        """Return the values as integer codes, with the scales, zero points and codebooks to store.

        Raises:
            EvaluationError: the tensor is empty, a value is not a number that the format can
                represent, or the blocks do not fit the axis.
        """
        layout = self._layout(np.shape(values), axis)
        blocks = layout.table(values)
        sides, lattice = self.scaling.fit(blocks, self.grid)
        codes = np.empty(blocks.shape, dtype=np.uint32)
        for rows, columns in chunks(blocks.shape):
            part = self._snap_part(blocks, lattice, (rows, columns))
            codes[rows, columns] = lattice.codes(part, rows)
        return Encoded(shape=layout.shape, axis=axis, codes=layout.cut(codes).ravel(), sides=sides)

    def decode(self, encoded: Encoded) -> Single:
        """Return the values that the codes represent, float32."""
        layout = self._layout(encoded.shape, encoded.axis)
        table = layout.fill(encoded.codes.reshape(layout.rows, layout.length))
        lattice = self.scaling.read(encoded.sides, self.grid)
        out = np.empty(table.shape, dtype=np.float32)
        for rows, columns in chunks(out.shape):
            part = lattice.values(table[rows, columns].astype(np.uint32), rows)
            _restore(part, lattice, rows, out[rows, columns])
        return layout.restore(out)

    def bits(self, shape: tuple[int, ...], axis: Axis = -1) -> FormatSize:
        """Return the storage size in bits, by purpose, of a tensor of this shape, without padding.

        Raises:
            EvaluationError: the shape is empty, or the blocks do not fit the axis.
        """
        layout = self._layout(shape, axis)
        parts = {"scale": 0, "zero_point": 0, "codebook": 0}
        for side in self.scaling.fields(layout.blocks, self.grid):
            parts[side.part] += side.bits * side.count
        return FormatSize(numbers=layout.size, payload=layout.size * self.grid.bits, **parts)

    def pack(self, encoded: Encoded) -> bytes:
        """Return codes, scales, zero points and codebooks as a bit stream of whole bytes."""
        fields = self._fields(encoded.shape, encoded.axis)
        bits = [_loose(encoded.sides[name], width) for name, width, _ in fields[1:]]
        bits.insert(0, _loose(encoded.codes, self.grid.bits))
        return np.packbits(np.concatenate(bits), bitorder="little").tobytes()

    def unpack(self, data: bytes, shape: tuple[int, ...], axis: Axis = -1) -> Encoded:
        """Decode the bytes that :meth:`pack` returned to an encoded tensor of this shape."""
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
        found = {}
        start = 0
        for name, width, count in self._fields(shape, axis):
            found[name] = _words(bits[start : start + width * count], width)
            start += width * count
        codes = found.pop("")
        return Encoded(shape=tuple(shape), axis=axis, codes=codes, sides=found)

    def _layout(self, shape: tuple[int, ...], axis: Axis) -> BlockLayout:
        return BlockLayout.of(tuple(shape), axis, self.scaling.span, short=self.short)

    def _snap_part(self, blocks: Single, lattice: Lattice, part: tuple[slice, slice]) -> Single:
        """Return some blocks' values multiplied by their scale factors (``into``) and rounded.

        ``part`` selects them: a slice of the blocks, and a slice of the positions within a block.
        """
        rows, columns = part
        values = blocks[part]
        scaled = values.copy() if lattice.into is None else values * lattice.into[rows]
        chance = None
        if self.seed is not None:
            starts = np.arange(len(blocks), dtype=np.uint32)[rows] * np.uint32(blocks.shape[1])
            places = np.arange(blocks.shape[1], dtype=np.uint32)[columns]
            chance = dither(self.seed, starts[:, None] + places)
        lattice.snap(scaled, rows, chance)
        return scaled

    def _fields(self, shape: tuple[int, ...], axis: Axis) -> list[tuple[str, int, int]]:
        """Return name, bits per element and length of each stored array; codes have name ``""``."""
        layout = self._layout(shape, axis)
        sides = self.scaling.fields(layout.blocks, self.grid)
        return [
            ("", self.grid.bits, layout.size),
            *((side.name, side.bits, side.count) for side in sides),
        ]


def _restore(part: Single, lattice: Lattice, rows: slice, out: Single) -> None:
    """Write rounded numbers times their block's scale to ``out``, clipped to finite float32."""
    if lattice.back is None:
        out[...] = part
        return
    back = lattice.back[rows]
    if back.max() < _HUGE:
        np.multiply(part, back, out=out)
        return
    top = np.finfo(np.float32).max
    out[...] = np.clip(part.astype(np.float64) * back, -top, top)


def _loose(words: Words, width: int) -> Loose:
    """Return the ``width`` low bits of each 32-bit integer, lowest bit first, one bit per byte."""
    table = np.unpackbits(words.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return table[:, :width].ravel()


def _words(bits: Loose, width: int) -> Words:
    """Return the 32-bit integers that have these low bits; the inverse of :func:`_loose`."""
    table = np.zeros((len(bits) // width, 32), dtype=np.uint8)
    table[:, :width] = bits.reshape(-1, width)
    return np.packbits(table, axis=1, bitorder="little").view(np.uint32).ravel()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSize:
    """Storage bits of a tensor by purpose: codes, scales, zero points and codebooks."""

    numbers: int  # number of stored values
    payload: int
    scale: int = 0
    zero_point: int = 0
    codebook: int = 0
    index: int = 0

    @property
    def total(self) -> int:
        """Total bits of all purposes."""
        return self.payload + self.scale + self.zero_point + self.codebook + self.index

    @property
    def total_bytes(self) -> int:
        """Total size in bytes, rounded up."""
        return -(-self.total // 8)

    @property
    def bits_per_number(self) -> float:
        """Average bits per stored value."""
        return self.total / self.numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Quantized tensor: its codes, with rows along ``axis`` in order, and its scales."""

    shape: tuple[int, ...]
    axis: Axis
    codes: Words  # (n,)
    sides: Sides
