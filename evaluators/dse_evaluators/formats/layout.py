"""Layout of a tensor as a table of blocks; the values of a block share a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single, as_single

Number = TypeVar("Number", bound=np.generic)
Axis = int | tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Two-dimensional block of a matrix whose values share a scale.

    Source:
        DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.3.2 (128 x 128 for weights).
    """

    rows: int = 128
    columns: int = 128


Span = int | Tile | Literal["channel", "tensor"]
"""Values that share a scale: consecutive ones, a block of a matrix, a row (channel), or all."""


def option_of(span: Span) -> str:
    """Return the option that states which values share a scale, such as ``group=32``."""
    if isinstance(span, Tile):
        return f"block={span.rows}x{span.columns}"
    return span if isinstance(span, str) else f"group={span}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLayout:
    """Layout of a tensor as rows, each cut into blocks of neighbouring values that share a scale.

    With ``of(..., short=True)`` the length of a row need not be a multiple of the block size: its
    last block is padded with zeros for computing, and the zeros are not stored.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]  # permutation of the axes; those along which a row runs are last
    rows: int
    length: int  # numbers in a row
    block: int  # neighbouring numbers of a row that share a scale
    height: int = 1  # neighbouring rows that share a scale

    @staticmethod
    def of(shape: tuple[int, ...], axis: Axis, span: Span, *, short: bool) -> BlockLayout:
        """Return the layout of a tensor of this shape in which ``span`` values share a scale.

        Raises:
            EvaluationError: the tensor is empty, has no such axis, or the length of a row or the
                number of rows is not a multiple of the block size.
        """
        if 0 in shape:
            raise EvaluationError(
                f"an empty tensor, of shape {shape}, has no numbers to store",
                hint="leave the layer out, or keep it",
            )
        along = _along(shape, axis)
        order = (*(a for a in range(len(shape)) if a not in along), *along)
        length = math.prod(shape[a] for a in along)
        rows = math.prod(shape) // length
        if span == "tensor":
            rows, length = 1, rows * length
        tile = span if isinstance(span, Tile) else Tile(rows=1, columns=length)
        block, height = span if isinstance(span, int) else tile.columns, tile.rows
        if short:  # a longer block would only add padding
            block, height = min(block, length), min(height, rows)
        elif length % block:
            raise EvaluationError(
                f"{length} numbers along axis {axis} are no multiple of a block of {block}",
                hint="add tail=short for a shorter last block",
            )
        elif rows % height:
            raise EvaluationError(
                f"{rows} rows along axis {axis} are no multiple of a block of {height} rows",
                hint="add tail=short for a smaller last block",
            )
        return BlockLayout(
            shape=shape, order=order, rows=rows, length=length, block=block, height=height
        )

    @property
    def blocks(self) -> int:
        """Number of blocks of the tensor."""
        return self.down * self.across

    @property
    def across(self) -> int:
        """Number of blocks next to each other in a row."""
        return -(-self.length // self.block)

    @property
    def down(self) -> int:
        """Number of blocks in a column."""
        return -(-self.rows // self.height)

    @property
    def size(self) -> int:
        """Number of values of the tensor, without padding."""
        return self.rows * self.length

    def table(self, values: Single) -> Single:
        """Return the tensor as float32 blocks, (blocks, block size), padded with zeros.

        Raises:
            EvaluationError: the values are no real numbers, or exceed the range of float32.
        """
        plain = as_single(values).transpose(self.order)
        return self.fill(np.ascontiguousarray(plain).reshape(self.rows, self.length))

    def fill(
        self,
        numbers: NDArray[Number],  # (rows, length)
    ) -> NDArray[Number]:
        """Return rows padded with zeros and cut into blocks, (blocks, block size)."""
        missing = -self.rows % self.height, -self.length % self.block
        if any(missing):
            numbers = np.pad(numbers, ((0, missing[0]), (0, missing[1])))
        if self.height > 1:
            tiles = numbers.reshape(self.down, self.height, self.across, self.block)
            numbers = tiles.swapaxes(1, 2)
        return numbers.reshape(self.blocks, self.height * self.block)

    def cut(
        self,
        table: NDArray[Number],  # (blocks, block)
    ) -> NDArray[Number]:
        """Return the blocks joined into rows without padding, (rows, length)."""
        if self.height > 1:
            tiles = table.reshape(self.down, self.across, self.height, self.block)
            table = tiles.swapaxes(1, 2)
        joined = table.reshape(self.down * self.height, -1)
        return joined[: self.rows, : self.length]

    def restore(
        self,
        table: Single,  # (blocks, block)
    ) -> Single:
        """Join blocks to the tensor in its original shape, without padding."""
        sides = tuple(self.shape[a] for a in self.order)
        turned = self.cut(table).reshape(sides).transpose(np.argsort(self.order))
        return np.ascontiguousarray(turned).reshape(self.shape)  # a single number has no axis


def _along(shape: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    """Return ``axis`` as a tuple of non-negative axis indices; all axes if it is ``None``."""
    if axis is None:
        return tuple(range(len(shape)))
    wanted = (axis,) if isinstance(axis, int) else axis
    rank = len(shape)
    if not all(-rank <= a < rank for a in wanted) or len({a % rank for a in wanted}) < len(wanted):
        raise EvaluationError(f"a tensor of shape {shape} has no axes {axis}")
    return tuple(a % rank for a in wanted)
