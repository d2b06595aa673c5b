"""Size of a compressed layer in bytes, computed without writing it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from dse_evaluators.compression.quantize import Quantised

HEADER_BYTES = 12
SCALE_BYTES = 4
BIAS_BYTES = 4


class SparsityEncoding(IntEnum):
    """Encoding of the positions of a layer's stored weights, such as a bitmap.

    ``DENSE`` stores every code. The others store only the non-zero codes: ``BITMAP`` with one bit
    per weight, ``ROWS`` (compressed sparse rows) with each filter's count and each code's column.
    """

    DENSE = 0
    BITMAP = 1
    ROWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Quantities that determine a layer's stored size.

    They are the numbers of filters, columns and nonzeros, and the bits per code.
    """

    rows: int
    columns: int
    kept: int
    bits: int

    @staticmethod
    def of(tensor: Quantised) -> Shape:
        """Return the rows, columns, non-zeros and bits per code of a quantized tensor."""
        rows = len(tensor.words)
        return Shape(
            rows=rows,
            columns=tensor.words.size // rows,
            kept=int(np.count_nonzero(tensor.words)),
            bits=tensor.word.bits,
        )

    @property
    def count_bits(self) -> int:
        """Number of bits of a filter's count of stored codes, which is from 0 to ``columns``."""
        return self.columns.bit_length()

    @property
    def column_bits(self) -> int:
        """Number of bits of a column index."""
        return (self.columns - 1).bit_length()

    def weight_bytes(self, layout: SparsityEncoding) -> int:
        """Return the bytes of positions and codes; each section is padded to a whole byte."""
        match layout:
            case SparsityEncoding.DENSE:
                return _bytes(self.rows * self.columns * self.bits)
            case SparsityEncoding.BITMAP:
                return _bytes(self.rows * self.columns) + _bytes(self.kept * self.bits)
            case SparsityEncoding.ROWS:
                places = _bytes(self.rows * self.count_bits) + _bytes(self.kept * self.column_bits)
                return places + _bytes(self.kept * self.bits)

    @property
    def layout(self) -> SparsityEncoding:
        """Encoding with the fewest bytes of positions and codes; the simplest of equal ones."""
        return min(SparsityEncoding, key=self.weight_bytes)


def size_bytes(tensor: Quantised) -> int:
    """Return the bytes of one layer: header, scales, fp32 biases, positions and codes."""
    shape = Shape.of(tensor)
    overhead = HEADER_BYTES + SCALE_BYTES * len(tensor.scale) + BIAS_BYTES * shape.rows
    return overhead + shape.weight_bytes(shape.layout)


def _bytes(bits: int) -> int:
    return -(-bits // 8)
