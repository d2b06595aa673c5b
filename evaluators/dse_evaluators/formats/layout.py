"""Layout of a tensor as a table of blocks; the values of a block share a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single

Number = TypeVar("Number", bound=np.generic)
Axis = int | tuple[int, ...] | None
Span = int | Literal["channel", "tensor"]
"""Values that share a scale: a number of consecutive ones, a row (channel), or the tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLayout:
    """Layout of a tensor as rows along the axes of scaling, each row cut into blocks of values.

    With ``short``, the last block of a row may be shorter than the others; it is padded with zeros,
    which are never stored.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]  # permutation of the axes; those along which a row runs are last
    rows: int
    length: int  # numbers in a row
    block: int

    @staticmethod
    def of(shape: tuple[int, ...], axis: Axis, span: Span, *, short: bool) -> BlockLayout:
        """Return the layout of a tensor of this shape in which ``span`` values share a scale.

        Raises:
            EvaluationError: the tensor is empty, has no such axis, or the length of a row is not a
                multiple of the block size.
        """
        if 0 in shape:
            raise EvaluationError(f"an empty tensor, of shape {shape}, has no numbers to store")
        along = _along(shape, axis)
        order = (*(a for a in range(len(shape)) if a not in along), *along)
        length = math.prod(shape[a] for a in along)
        rows = math.prod(shape) // length
        if span == "tensor":
            rows, length = 1, rows * length
        block = span if isinstance(span, int) else length
        if short:
            block = min(block, length)  # a longer block would only add padding
        elif length % block:
            raise EvaluationError(
                f"{length} numbers along axis {axis} are no multiple of a block of {block}",
                hint="add tail=short for a shorter last block",
            )
        return BlockLayout(shape=shape, order=order, rows=rows, length=length, block=block)

    @property
    def blocks(self) -> int:
        """Number of blocks of the tensor."""
        return self.rows * -(-self.length // self.block)

    @property
    def size(self) -> int:
        """Number of values of the tensor, without padding."""
        return self.rows * self.length

    def table(self, values: Single) -> Single:
        """Return the tensor as float32 blocks, (blocks, block size), padded with zeros."""
        plain = np.asarray(values, dtype=np.float32).transpose(self.order)
        return self.fill(np.ascontiguousarray(plain).reshape(self.rows, self.length))

    def fill(
        self,
        numbers: NDArray[Number],  # (rows, length)
    ) -> NDArray[Number]:
        """Return each row padded with zeros and cut into blocks, (blocks, block size)."""
        missing = -self.length % self.block
        if missing:
            numbers = np.pad(numbers, ((0, 0), (0, missing)))
        return numbers.reshape(self.blocks, self.block)

    def cut(
        self,
        table: NDArray[Number],  # (blocks, block)
    ) -> NDArray[Number]:
        """Return the blocks joined into rows without padding, (rows, length)."""
        return table.reshape(self.rows, -1)[:, : self.length]

    def restore(
        self,
        table: Single,  # (blocks, block)
    ) -> Single:
        """Return the tensor of these blocks, in its original shape and without padding."""
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
